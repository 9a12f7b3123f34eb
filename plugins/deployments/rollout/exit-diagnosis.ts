import { DeployFailure } from './deploy-failure.js'
import { listRights, rightsMissed } from './needed-rights.js'

/** What is known of a container whose process has ended. */
interface ContainerExit {
  /** Null when the engine started it again before it could be seen. */
  readonly exitCode: number | null
  readonly oomKilled: boolean
  /** Its last output, oldest first. */
  readonly lines: readonly string[]
}

/** What of the application's settings can be the reason. */
interface ExitSettings {
  readonly memoryLimit: number
  readonly containerCaps: 'minimal' | 'standard'
  readonly readonlyRootfs: boolean
  /** Null: the image's own. */
  readonly startCommand: readonly string[] | null
  /** `linux/arm64`, where the image is made for another kind of machine. */
  readonly foreignPlatform?: string
}

/** The failure of a container that ended while it was being proven healthy. */
export function explainExit(exit: ContainerExit, settings: ExitSettings): DeployFailure {
  const output = exit.lines.join('\n')
  const evidence = output === '' ? null : output
  if (exit.oomKilled) {
    const limit =
      settings.memoryLimit > 0
        ? `its limit of ${Math.round(settings.memoryLimit / 1024 / 1024)} MiB`
        : 'there is'
    return new DeployFailure(
      `the container was killed because it needed more memory than ${limit}`,
      'raise memory_limit, or make it need less',
      evidence
    )
  }
  const how = exit.exitCode === null ? 'ended' : `exited with code ${exit.exitCode}`
  return new DeployFailure(
    `the container ${how} before it was healthy`,
    remedyFor(exit, output, settings),
    evidence
  )
}

function remedyFor({ exitCode }: ContainerExit, output: string, settings: ExitSettings): string {
  if (settings.foreignPlatform !== undefined)
    return `its image is made for ${settings.foreignPlatform}, not for this machine: push it for this one too`
  // The words of the first process, which starts it: no program of the image has run yet.
  if ((exitCode === 126 || exitCode === 127) && /\[FATAL tini \(\d+\)\] exec /.test(output))
    return remedyForCommand(exitCode, settings)
  if (settings.readonlyRootfs && /read-only file system|EROFS/i.test(output)) {
    return 'it writes outside /tmp and /run: give it a volume there, or set readonly_rootfs to false with PUT …/runtime'
  }
  const missed = settings.containerCaps === 'minimal' ? rightsMissed(output) : undefined
  if (missed !== undefined)
    return `it was refused ${missed.length === 0 ? 'a right' : `the ${missed.length === 1 ? 'capability' : 'capabilities'} ${listRights(missed)}`}, as container_caps is minimal: set it to standard with PUT …/runtime, or make the image run as an ordinary user who owns its files`
  if (/EADDRINUSE|address already in use/i.test(output)) return 'two of its own processes want the same port'
  if (exitCode === 0) return 'its command ended by itself: the command of an application must keep running'
  if (exitCode === 126 || exitCode === 127) return remedyForCommand(exitCode, settings)
  if (exitCode === 137) return 'it was killed from outside, perhaps for lack of memory on the machine'
  return 'its last output says why'
}

function remedyForCommand(exitCode: 126 | 127, { startCommand }: ExitSettings): string {
  const what = exitCode === 127 ? 'was not found in the image' : 'cannot be executed'
  if (startCommand !== null)
    return `its start_command ${what}: correct it (it begins with ${startCommand[0] ?? ''} and is started without a shell), or clear it`
  return exitCode === 127
    ? 'its command was not found: check the CMD and ENTRYPOINT of the image'
    : 'its command cannot be executed: check its file mode and its first line'
}
