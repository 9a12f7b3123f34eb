import { DeployFailure } from './deploy-failure.js'

/** The container's command; without `entrypoint` the image's own stays. */
interface StartWords {
  readonly command: readonly string[]
  readonly entrypoint?: readonly string[]
}

const launcher = '/cnb/lifecycle/launcher'
const shell = /(^|\/)(ba|da|a|z|k)?sh$/
const lineFollows = /^-[a-z]*c$/

/**
 * The start command in the place of the image's CMD, so that its ENTRYPOINT still prepares what it prepares.
 * Entrypoints that take no words get what they take: a shell one line, the launcher of buildpacks its `--`.
 */
export function startWith(words: readonly string[], entrypoint: readonly string[]): StartWords {
  const [program = '', ...rest] = entrypoint
  if (program === launcher || program.startsWith('/cnb/process/'))
    return { entrypoint: [launcher], command: ['--', ...words] }
  const flag = shell.test(program) ? rest.findIndex(word => lineFollows.test(word)) : -1
  if (flag === -1) return { command: words }
  const line = rest.slice(flag + 1).filter(word => word !== '--')
  if (line.length === 0) return { command: [`exec ${words.map(quoted).join(' ')}`] }
  if (/\$\{?[@*0-9]/.test(line[0] ?? '')) return { command: words }
  throw new DeployFailure(
    'the ENTRYPOINT of the image is written in shell form, which ignores any start command',
    'write it as a JSON array in the Dockerfile, or as CMD, or clear start_command'
  )
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
