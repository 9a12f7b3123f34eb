import type { Readable, Writable } from 'node:stream'
import type { Owner } from './owner.js'

export interface ContainerSpec {
  readonly name: string
  readonly image: string
  readonly owner: Owner
  /** Name of a network from `ensureNetwork`. */
  readonly network: string
  readonly env: Readonly<Record<string, string>>
  /** Instead of the image's CMD. */
  readonly command?: readonly string[]
  /** Instead of the image's ENTRYPOINT, whose CMD then counts no more either. */
  readonly entrypoint?: readonly string[]
  /** Cores; 0 = no limit. */
  readonly cpuLimit: number
  /** Bytes; 0 = no limit. Swap is never added. */
  readonly memoryLimit: number
  /** `minimal` drops every capability; `standard` keeps the engine's default set but for raw sockets. */
  readonly caps: 'minimal' | 'standard'
  /** A read-only root gets a tmpfs on /tmp and /run. */
  readonly readonlyRootfs: boolean
  /** With threads; 4096 unless given. */
  readonly processes?: number
  /**
   * It runs containers of its own, as a build engine does: it may mount file systems, and make namespaces and control
   * groups inside its own, whose limits hold for all of it. Who is root there outside of these containers has the
   * engine's machine within reach: for programs that the platform chooses, which keep strangers' ones in. Goes with `standard`.
   */
  readonly runsContainers?: true
  /**
   * A program of the platform's own that serves its machine, as a proxy does. It is in the network of the machine itself and may
   * listen on every port of it, `network` does not count then; it has these folders, or files, of the machine at the paths that they
   * have there, and runs as this user of it. Only where the place of the engine is `here`, and never for what anybody but the
   * operator has chosen. As another user than root it listens below port 1024 if its image lets its program.
   */
  readonly onMachine?: {
    readonly user: { readonly uid: number; readonly gid: number }
    readonly folders: ReadonlyArray<{ readonly path: string; readonly readOnly?: boolean }>
  }
  /** It is not started again when it ends, nor after an outage of the engine. */
  readonly restarts?: false
  /** By which it is asked to end: `SIGINT`. That of its image unless given, or `SIGTERM`. */
  readonly stopSignal?: string
  readonly healthCommand?: {
    readonly command: string
    readonly intervalSeconds: number
    readonly timeoutSeconds: number
    readonly retries: number
    readonly startPeriodSeconds: number
  }
  readonly volumes?: ReadonlyArray<{
    readonly volume: string
    readonly path: string
    readonly readOnly?: boolean
  }>
  /**
   * Files that it sees at these paths and cannot change, which belong to root there. They are its own: no other container sees
   * them, they stay as they are for as long as it is there, and go with it.
   */
  readonly files?: readonly ContainerFile[]
}

export interface ContainerFile {
  readonly path: string
  readonly content: Buffer
  /** The rights that it has: 0o644. */
  readonly mode: number
}

export interface ContainerState {
  readonly id: string
  readonly name: string
  readonly image: string
  readonly owner: Owner
  readonly status: 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead'
  readonly exitCode: number
  readonly oomKilled: boolean
  readonly startedAt: string
  readonly health: 'healthy' | 'unhealthy' | 'starting' | null
  /** The last output of the container's own health check. */
  readonly healthOutput: string | null
  /** The engine's own explanation of a failed start. */
  readonly error: string
}

/** Swap is never added. `processes`: with threads. */
export interface ContainerCaps {
  readonly memoryBytes: number
  readonly cpus: number
  readonly processes: number
}

/** A line of what a program in a container writes, without its end; a very long one is cut and says so. */
export interface OutputLine {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
}

/**
 * A line of a container's output as the engine keeps it. One that is longer than the engine keeps in one piece (16 KiB) comes in several
 * of the same time.
 */
export interface LogLine extends OutputLine {
  /** When the engine took it in: RFC 3339 in UTC, always with nine digits behind the point, so that texts compare as times do. */
  readonly time: string
  /** The next line of the stream goes on with it, or the container has ended within it. */
  readonly continues?: true
}

/** Output that has come at once, in the order in which the engine keeps it; one line at least. */
export interface LogBatch {
  readonly lines: readonly LogLine[]
  /** Behind the last of them: what `after` takes. One line of text, of 200 characters at most. */
  readonly place: string
  /** Output is missing before the first of them: the engine had thrown it away before it was read. */
  readonly isGap?: true
}

export interface LogOptions {
  /** Only so many of the last lines that are there; all unless given. */
  readonly tail?: number
  /** Only what was written from then on. */
  readonly since?: Date
  /**
   * Only what stands behind this place in the output of the same container, whoever has read up to it and when: nothing of it is left
   * out, nothing comes a second time. `tail` does not count then.
   */
  readonly after?: string
  /** Goes on with what is written from now on, until the container ends or the signal aborts. */
  readonly follow?: boolean
  readonly signal: AbortSignal
}

export interface ExecOptions {
  /** Instead of the container's user; a name or `uid:gid`. */
  readonly user?: string
  /** Instead of the container's working directory. */
  readonly directory?: string
  /** Added to the container's variables. */
  readonly env?: Readonly<Record<string, string>>
  readonly onLine: (line: OutputLine) => void
  readonly signal: AbortSignal
}

export interface ProgramOptions {
  /** Instead of the container's user; a name or `uid:gid`. */
  readonly user?: string
  /** Added to the container's variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Aborting kills it, with all that it has started. */
  readonly signal: AbortSignal
}

/** A program beside the container's own, whose input and output are bytes. */
export interface ContainerProgram {
  /** Its end is the end of the program's input. A program that does not read makes its writer wait. */
  readonly input: Writable
  /** What it writes to its standard output. A program whose output nobody reads waits. It fails where the connection breaks; to destroy it kills the program. */
  readonly output: Readable
  /**
   * When it has ended and its output has been read: its exit code, and the last of what it has written to its standard error, of
   * 4 KiB at most. Rejects with the signal's reason when that has aborted, and where it is not known how it ended.
   */
  readonly ended: Promise<{ readonly exitCode: number; readonly errors: string }>
}

/** In characters, 1 to 65 535. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

export interface TerminalOptions {
  /** By which it is ended when whoever opened it has gone: 32 hexadecimal digits, for this one terminal. Programs in it can read it. */
  readonly terminalId: string
  readonly size: TerminalSize
  /** Added to the container's variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Aborting gives up opening it, and does nothing after that. */
  readonly signal: AbortSignal
}

/** A program with a terminal of its own, beside the container's. */
export interface ContainerTerminal {
  /**
   * What it writes, to be read once. A program whose output nobody reads waits. Ends when the program has ended, the container or
   * the connection to the engine; never rejects.
   */
  readonly output: AsyncIterable<Buffer>
  /** That of the program, when its output has ended: 137 where it was killed, by whomever. Null where it is not known. */
  exitCode(): Promise<number | null>
  /** Resolves when more may be written: a program that does not read makes its writer wait. Does nothing after its end. */
  write(data: Buffer): Promise<void>
  /** Does nothing after its end. Of several that are asked for at a time the last one counts. */
  resize(size: TerminalSize): Promise<void>
  /**
   * Ends all that was started in it, whatever became of the program: it hangs up, and kills after a second what has not ended.
   * Rejects where that cannot be done now; `endTerminal` can do it later.
   */
  end(): Promise<void>
}

/** What a running container uses. Totals count from its start: two samples give a rate. */
export interface ContainerStats {
  /** When it was measured. */
  readonly at: Date
  /** Total time on all cores, in seconds. */
  readonly cpuSeconds: number
  /** Without the part of the page cache that can be given back at once. */
  readonly memoryBytes: number
  /** The memory of the machine where it has no limit. */
  readonly memoryLimitBytes: number
  /** With threads. */
  readonly processes: number
  /** Totals over all of its networks. */
  readonly receivedBytes: number
  readonly sentBytes: number
  /** Totals over all disks. 0 where the engine's machine does not count it. */
  readonly readBytes: number
  readonly writtenBytes: number
}

/** What a container has written: to its own file system, and to volumes that its image declares and nothing else names. */
export interface ContainerDiskUse {
  readonly id: string
  readonly owner: Owner
  readonly isRunning: boolean
  /** In its files; of one that is late, what was measured last. */
  readonly bytes: number
  /** It was not measured in time. */
  readonly isLate: boolean
}

/** How long measuring may take, so that the files of one container do not keep others from being measured. */
export interface MeasuringLimits {
  /** One container. */
  readonly eachMs: number
  /** All that was asked for. Those that took too long the last time come last. */
  readonly allMs: number
}

/** What a container has taken of a disk, by a look at each of its files; of the same places. */
export interface ContainerFileUse {
  readonly id: string
  readonly owner: Owner
  readonly isRunning: boolean
  /** Files and directories, those without a name too. */
  readonly inodes: number
  /** The same, but each hard link counts. */
  readonly names: number
  /** Of those, made or changed since the time that was asked for, or without a name. */
  readonly recentInodes: number
  /** What files and directories with a name take on the disk, and what keeps account of them. */
  readonly bytes: number
  /** Of those, in files that were made or changed since. */
  readonly recentBytes: number
  /** In files that have no name any more and are open or mapped; of one that is only mapped, at most this much. */
  readonly namelessBytes: number
  /** It has more than could be looked at in time. */
  readonly isCut: boolean
}
