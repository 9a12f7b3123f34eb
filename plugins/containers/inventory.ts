import type { Owner } from './owner.js'

/** Characters of a text that whoever made a thing has chosen: a name, a tag. Longer ones are cut, and say so. */
export const longestListedText = 300
/** Of tags, ports, volumes and networks of one thing so many are told. */
export const mostListedEntries = 200

/**
 * Whose a thing on the engine is, verified; see `Owner`. `isManaged`: this installation has made it. One that it has made
 * for itself has no owner, and one without either is foreign: another platform or a person has made it.
 */
export interface Listed {
  readonly owner: Owner | null
  readonly isManaged: boolean
}

/** What a program in a container listens on is reached by a port of the engine's machine. */
export interface PublishedPort {
  /** The address of the machine; empty for any. */
  readonly host: string
  readonly hostPort: number
  readonly containerPort: number
  /** `tcp`, `udp`, `sctp`. */
  readonly protocol: string
}

/** A container, whoever made it. Nothing of its environment, command and labels, which may hold secrets. */
export interface ListedContainer extends Listed {
  readonly id: string
  readonly name: string
  /** As it was named when the container was made, or the image's id. */
  readonly image: string
  readonly imageId: string
  /** In the engine's words: `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`. */
  readonly status: string
  readonly ports: readonly PublishedPort[]
  /** Those that it is connected to now. */
  readonly networks: ReadonlyArray<{ readonly id: string; readonly ipv4Address: string }>
  /** The names of the volumes that it has mounted. */
  readonly volumes: readonly string[]
  readonly createdAt: Date
}

/** An image that has a name, or that no other one continues. */
export interface ListedImage extends Listed {
  readonly id: string
  /** `name:tag`; empty for one without a name. */
  readonly tags: readonly string[]
  /** Neither a name nor a digest leads to it. */
  readonly isDangling: boolean
  readonly sizeBytes: number
  readonly createdAt: Date
}

export interface ListedNetwork extends Listed {
  readonly id: string
  readonly name: string
  readonly driver: string
  /** How far it reaches, in the engine's words: `local`, `swarm`. */
  readonly scope: string
  /** Its containers reach nothing outside of it. */
  readonly isInternal: boolean
  readonly createdAt: Date
}

export interface ListedVolume extends Listed {
  readonly name: string
  readonly driver: string
  /** A path of the engine's machine. */
  readonly mountpoint: string
  readonly scope: string
  /** Null where its driver does not tell. */
  readonly createdAt: Date | null
}

/** What all things of one kind take of the disk. */
export interface DiskShare {
  readonly count: number
  readonly bytes: number
  /** Of that, what comes back when those are removed that nothing uses. */
  readonly reclaimableBytes: number
}

/** What is on the engine's disk. A part of an image that several have counts once. */
export interface EngineDiskUse {
  /** All layers of all images. */
  readonly layersBytes: number
  readonly images: DiskShare
  /** What they have written into their own file systems. */
  readonly containers: DiskShare
  readonly volumes: DiskShare
  readonly buildCache: DiskShare
  /** By the id of an image, what of it other images have too. Of those that were told. */
  readonly sharedBytes: ReadonlyMap<string, number>
  /** By the name of a volume. Those that cannot be measured are left out. */
  readonly volumeBytes: ReadonlyMap<string, number>
}

/**
 * Everything that is on an engine, whoever made it, for those who look after its machine. Each list takes one look at the
 * engine, whatever its length, and one more for each container that it meets for the first time and that may be this
 * installation's own. There is one look of a kind at a time: those who ask meanwhile share the next one, which begins after
 * they have asked, and are given the same list.
 *
 * Texts are cut to `longestListedText`, lists in a row to `mostListedEntries`, and what no terminal shows is replaced. It says
 * nothing of labels, environments, commands and options of drivers. Rejects as `ContainerRuntime` does: 503
 * E_ENGINE_UNREACHABLE, 502 E_ENGINE_REFUSED.
 */
export interface EngineInventory {
  /** Stopped ones too; the newest first. */
  containers(): Promise<readonly ListedContainer[]>
  /** The newest first. */
  images(): Promise<readonly ListedImage[]>
  /** By name. */
  networks(): Promise<readonly ListedNetwork[]>
  /** By name. */
  volumes(): Promise<readonly ListedVolume[]>
  /** An engine looks at every file of every container and volume for it, which may take minutes. */
  diskUse(): Promise<EngineDiskUse>
}
