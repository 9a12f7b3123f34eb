import type Docker from 'dockerode'
import { short } from './container-access.js'
import type { EngineClient } from './engine-client.js'
import { containerLines } from './output-lines.js'

const mostLines = 2000

/** The last lines of a container's output, oldest first. None where it goes meanwhile. */
export async function lastLines(
  engine: EngineClient,
  { Id: id, Config: { Tty: hasTerminal } }: Docker.ContainerInspectInfo,
  lines: number
): Promise<readonly string[]> {
  const wanted = Math.min(lines, mostLines)
  const output = await engine.call(
    `read the output of the container ${short(id)}`,
    async docker =>
      await docker.getContainer(id).logs({ follow: false, stdout: true, stderr: true, tail: wanted }),
    { absent: [404] }
  )
  return output === undefined ? [] : containerLines(Buffer.from(output), hasTerminal, wanted).slice(-wanted)
}
