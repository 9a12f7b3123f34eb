/** What is wrong: the text, what only BuildKit can do, a label of ours, or an image of another application. */
type DockerfileFault = 'invalid' | 'buildkit' | 'label' | 'foreign'

/** Why a Dockerfile is not built. The message says the cause and what to write instead. */
export class BadDockerfile extends Error {
  constructor(
    /** In the author's file, from 1. */
    readonly line: number,
    reason: string,
    readonly fault: DockerfileFault = 'invalid'
  ) {
    super(reason)
  }
}

const mostShown = 60

/** Text from outside inside a message: short, in quotes, and without characters that cannot be seen. */
export function quoted(text: string): string {
  const short = text.length > mostShown ? `${text.slice(0, mostShown)}…` : text
  return JSON.stringify(short).replace(
    /[^ -~…]/gu,
    character => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
  )
}
