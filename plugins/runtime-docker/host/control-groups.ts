import { installationTag } from './installation-tag.js'

/** Who keeps the control groups of the engine's machine: the engine itself, or the machine's init system. */
type GroupDriver = 'cgroupfs' | 'systemd'

/**
 * The control groups of an installation: one for all its containers, and in it one for those of each project. Their names
 * are paths below each hierarchy of the machine.
 */
export class ControlGroups {
  readonly #tag: string

  constructor(
    instanceId: string,
    readonly driver: GroupDriver
  ) {
    this.#tag = installationTag(instanceId)
  }

  /** Of all containers. Without a dash: to systemd that is a level. */
  get all(): string {
    return this.driver === 'systemd' ? `busbar${this.#tag}.slice` : `busbar${this.#tag}`
  }

  /** Of the containers of a project. */
  ofProject(projectId: string): string {
    return `${this.all}/${this.#ofProject(projectId)}`
  }

  /** What the engine takes for the parent of a container, or of the steps of a build. */
  parentOf(projectId: string | undefined): string {
    if (this.driver === 'cgroupfs')
      return `/${projectId === undefined ? this.all : this.ofProject(projectId)}`
    return projectId === undefined ? this.all : this.#ofProject(projectId)
  }

  #ofProject(projectId: string): string {
    // Other characters may mean something in a path. Ids of projects are UUIDs.
    const name = projectId.toLowerCase().replace(/[^0-9a-z]+/g, '')
    return this.driver === 'systemd' ? `busbar${this.#tag}-${name}.slice` : name
  }
}
