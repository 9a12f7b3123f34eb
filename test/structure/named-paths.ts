import { dirname, join } from 'node:path'

interface NamedPath {
  readonly line: number
  readonly path: string
}

interface Project {
  /** Folders at the root, by which a path of the project is told from any other. */
  readonly folders: readonly string[]
  has(path: string): boolean
}

const isTest = (file: string): boolean => /(?:^|\/)test\//.test(file)

/** What a file says about the project: all of it, but of a document what is in backticks, and of a test its comments. */
function spansOf(file: string, line: string): string[] {
  if (file.endsWith('.md')) return [...line.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? '')
  if (!isTest(file)) return [line]
  const [comment] = /^\s*(?:\/?\*|\/\/).*|\s\/\/ .*$/.exec(line) ?? []
  return comment === undefined ? [] : [comment]
}

/** Patterns name no file. */
const opensPattern = new Set(['*', '<', '{', '$', '[', '?', '…'])

/**
 * The paths that a file names and that do not exist. `test/happy-calls.ts` may be that of a plugin; `.js` is the built
 * form of a `.ts`.
 */
export function missingPaths(file: string, text: string, { folders, has }: Project): NamedPath[] {
  const named = new RegExp(
    String.raw`(?<![\w./$@{}-])(?:${folders.map(name => name.replace('.', String.raw`\.`)).join('|')})/[\w./-]*`,
    'g'
  )
  const exists = (path: string): boolean =>
    [path, path.replace(/\.js$/, '.ts')].some(one => has(one) || has(`plugins/*/${one}`))
  const isMeant = (path: string, next: string): boolean =>
    !opensPattern.has(next) && !path.includes('/node_modules/')
  return text.split('\n').flatMap((line, index) => {
    const inText = spansOf(file, line).flatMap(span =>
      [...span.matchAll(named)].flatMap(({ 0: found, index: at }) => {
        const path = found.replace(/[./]+$/, '')
        return isMeant(path, span[at + found.length] ?? '') && !exists(path) ? [path] : []
      })
    )
    return [...inText, ...(file.endsWith('.md') ? brokenLinks(file, line, has) : [])].map(path => ({
      line: index + 1,
      path
    }))
  })
}

function brokenLinks(file: string, line: string, has: (path: string) => boolean): string[] {
  const links = [...line.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)].map(([, target]) => target ?? '')
  return links
    .filter(target => !/^(?:[a-z]+:|\/)/.test(target))
    .map(target => join(dirname(file), target).replace(/\/$/, ''))
    .filter(path => !has(path))
}
