import type { Owner } from 'busbar/api/containers'

/** A Dockerfile that the platform has written, from one that it has read. */
export interface GeneratedSource {
  /** What its author calls the Dockerfile, for errors. */
  readonly name: string
  /** One for each instruction, in order. */
  readonly steps: ReadonlyArray<{
    /** The instruction, as the engine says it before it carries it out. */
    readonly text: string
    /** The same for a reader of the log. */
    readonly shown: string
    /** In what is handed over, and in what the author has written; from 1. */
    readonly line: number
    readonly sourceLine: number
  }>
}

export interface BuildOptions {
  readonly tag: string
  /** Relative to the context's root. */
  readonly dockerfile: string
  readonly buildArgs: Readonly<Record<string, string>>
  /** The steps run in the network for builds of its project. */
  readonly owner: Owner & { readonly projectId: string }
  /**
   * The Dockerfile sets the labels of `imageLabels(owner)` itself, early, where the cache of the engine keeps
   * them. Otherwise the engine adds them at the end, which costs a step (about 100 ms) each in every build.
   */
  readonly isLabelled?: true
  /**
   * What the engine says of its steps must equal these, else the build ends with 502 E_BUILD_DIFFERS. Its image has no
   * name before that is certain. Errors speak of the author's lines. Goes with `isLabelled`.
   */
  readonly generated?: GeneratedSource
  readonly memoryBytes: number
  readonly cpus: number
  /** Processes and threads of one step; 4096 unless given. */
  readonly processes?: number
  readonly noCache?: boolean
}

/** The container in which a step of a build runs, or ran when the build was cut off. */
export interface BuildStep {
  readonly id: string
  readonly owner: Owner
}

/** Steps that no image needs, and that the next build may be glad of. */
export interface KeptSteps {
  /** `stageEnds` of an image: these steps and those before them. */
  readonly ends: readonly string[]
  /** So many of the others, each with the steps before it: the newest that were made after `after`. */
  readonly newest: number
  readonly after: Date
  /** Those newest may take so much together, each beginning with its first step; absent: any. */
  readonly newestBytes?: number
  /** All that was built for these applications. */
  readonly applications?: ReadonlySet<string>
}

/** What a build that is under way has written on the engine, or a load at most. */
export interface BuildUsage {
  readonly owner: Owner
  readonly bytes: number
  /** Of that, what the step that runs holds: the engine copies it when the step ends, and a cancel does not stop that. */
  readonly runningStepBytes: number
  /**
   * It may have written more. A build always: an open file without a name is on the disk, and found by no walk through
   * names; nor are volumes measured, or what the engine copies for COPY until it is there. A load that is unpacked: a
   * layer may be packed better than others are.
   */
  readonly isPartial: boolean
}

/** What the files of a build take on the engine's disk: those of its steps, ended ones too, by a look at each. */
export interface BuildFileUse {
  readonly owner: Owner
  /** Volumes of steps and files without a name too. */
  readonly bytes: number
  readonly inodes: number
  /** It has more than could be looked at in time. */
  readonly isCut: boolean
}

/** A step of a build, as the engine that carries it out tells it. */
export interface StepProgress {
  /** By which it is told from the others of the build; those that begin later have higher ones. */
  readonly number: number
  /** With its place among those of its stage: `[build 2/4] RUN npm ci`. */
  readonly name: string
  readonly state: 'running' | 'done' | 'cached' | 'failed' | 'cancelled'
}
