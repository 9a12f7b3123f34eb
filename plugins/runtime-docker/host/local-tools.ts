import type { Exec } from 'busbar/sdk'
import type { HostTools } from './host-tools.js'

const longestMs = 5 * 60_000
/** As in a container of the engine. */
const maxOutputBytes = 32 * 2 ** 20

/** Programs of the platform's own machine. */
export const localTools = (exec: Exec): HostTools => ({
  async run(argv, input) {
    const { exitCode, stdout, stderr, truncated } = await exec.run(argv, {
      timeoutMs: longestMs,
      maxOutputBytes,
      env: { LC_ALL: 'C' },
      ...(input === undefined ? {} : { input })
    })
    if (truncated) throw new Error(`${argv[0]} wrote more than ${maxOutputBytes} bytes`)
    return { code: exitCode ?? 1, output: stdout, errors: stderr }
  }
})
