const longestLine = 4000

/**
 * Whether a step may mount a key for SSH, as far as its words say so. It decides nothing: the build engine reads the Dockerfile
 * itself, and gives the key to no other step.
 */
export const mountsSsh = (text: string): boolean =>
  text.split('\n').some(line => {
    const start = line.slice(0, longestLine)
    return !start.trimStart().startsWith('#') && start.split(/[ \t]+/).some(isSshMount)
  })

const isSshMount = (word: string): boolean =>
  word.startsWith('--mount=') &&
  word
    .slice('--mount='.length)
    .split(',')
    .some(part => part.replace(/["']/g, '').toLowerCase() === 'type=ssh')
