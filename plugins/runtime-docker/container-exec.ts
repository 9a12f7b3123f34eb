import type { ExecOptions } from 'busbar/api/containers'
import type { EngineClient } from './engine-client.js'
import { outputFrames } from './output-frames.js'
import { asReadable, OutputLines } from './output-lines.js'
import { problems } from './problems.js'

/** See `ContainerRuntime.exec`. */
export async function runInContainer(
  engine: EngineClient,
  containerId: string,
  command: readonly string[],
  { user, directory, env = {}, onLine, signal }: ExecOptions
): Promise<number> {
  signal.throwIfAborted()
  const task = `run ${command[0] ?? 'nothing'} in a container`
  try {
    const exec = await engine.call(
      task,
      async docker =>
        await docker.getContainer(containerId).exec({
          Cmd: [...command],
          AttachStdout: true,
          AttachStderr: true,
          Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
          User: user,
          WorkingDir: directory,
          abortSignal: signal
        }),
      {
        explain: ({ statusCode }) =>
          statusCode === 404 ? problems.containerMissing({ container: containerId }) : undefined
      }
    )
    const output = await engine.call(
      task,
      async docker =>
        asReadable(await docker.getExec(exec.id).start({ hijack: false, stdin: false, abortSignal: signal })),
      { patient: true }
    )
    const lines = {
      stdout: new OutputLines(text => onLine({ stream: 'stdout', text })),
      stderr: new OutputLines(text => onLine({ stream: 'stderr', text }))
    }
    for await (const { stream, text } of engine.reading(task, outputFrames(output, false)))
      await lines[stream].writeInTurns(text)
    for (const stream of Object.values(lines)) stream.end()
    const { ExitCode: exitCode } = await engine.call(
      task,
      async docker => await docker.getExec(exec.id).inspect()
    )
    if (exitCode === null) throw problems.execCut({ container: containerId })
    return exitCode
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}
