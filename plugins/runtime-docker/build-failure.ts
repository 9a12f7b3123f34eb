import type { BuildOptions } from 'busbar/api/images'
import { cutMark, cutText, type Problem } from 'busbar/sdk'
import { parseImageReference } from './image-reference.js'
import { problems } from './problems.js'
import { isAboutRegistry, pullProblem } from './pull-failure.js'

const outOfMemoryCode = 137

/** The engine's words about a failed build as a problem with a remedy. `baseImage` is the FROM it was at. */
export function buildProblem(
  words: string,
  build: { readonly dockerfile: string; readonly memoryBytes: number; readonly baseImage: string }
): Problem {
  const reason = shortened(words.trim())
  const [, command, code] = /^The command '(.*)' returned a non-zero code: (\d+)$/s.exec(reason) ?? []
  if (command !== undefined && code !== undefined)
    return commandProblem(command, Number(code), build.memoryBytes)
  if (/no space left on device/i.test(reason)) return problems.diskFull({ task: 'build the image', reason })
  if (isAboutRegistry(reason))
    return pullProblem({ reference: referenceOf(build.baseImage), image: build.baseImage }, reason)
  const buildKitOption = /the (--\S+ option) requires BuildKit/.exec(reason)?.[1]
  if (buildKitOption !== undefined) return problems.buildKit({ reason: buildKitOption })
  if (/^(COPY|ADD) failed/.test(reason)) return problems.buildCopy({ reason })
  if (
    /dockerfile parse error|Cannot locate specified Dockerfile|cannot be empty|unknown instruction|failed to parse|no build stage|base name \(\S*\) should not be blank/i.test(
      reason
    )
  ) {
    return problems.buildDockerfile({
      dockerfile: build.dockerfile,
      reason: reason.replace(/^dockerfile parse error:? ?/i, '')
    })
  }
  return problems.buildFailed({ reason })
}

/** The engine counts the lines of what it was given, its reader those of what they have written. */
export function withSourceLine(words: string, { generated }: Pick<BuildOptions, 'generated'>): string {
  return words.replace(/^(dockerfile parse error (?:on )?line )(\d+)/, (all, begin: string, line: string) => {
    const step = generated?.steps.find(step => step.line === Number(line))
    return step === undefined ? all : `${begin}${step.sourceLine}`
  })
}

// A command may be as long as its Dockerfile; what went wrong stands at either end.
const shortened = (words: string): string =>
  words.length > 4000 ? words.slice(0, 3000) + cutMark + words.slice(-900) : words

function commandProblem(command: string, code: number, memoryBytes: number): Problem {
  const shown = cutText(command.replace(/^\/bin\/sh -c /, '').replace(/\s+/g, ' '), 300)
  return code === outOfMemoryCode
    ? problems.buildKilled({ command: shown, memory: Math.round(memoryBytes / 2 ** 20) })
    : problems.buildCommand({ command: shown, code })
}

function referenceOf(image: string): ReturnType<typeof parseImageReference> {
  try {
    return parseImageReference(image)
  } catch {
    return { registry: 'docker.io', name: image, version: 'latest' }
  }
}
