import type { Contributions } from 'busbar/sdk'
import type { BuildEngineKind, EngineProgram } from '../api.js'
import { buildkitProgram } from './buildkit-program.js'
import { dockerdProgram } from './dockerd-program.js'

/** Part of names of containers and folders. */
const kindPattern = /^[a-z][a-z0-9-]{0,39}$/
/** What `build_engine` says besides kinds. */
const otherChoices: ReadonlySet<string> = new Set(['auto', 'classic'])

/** Those of this plugin, with the images of its settings. */
export const ownKinds = (settings: {
  readonly buildkit_image: string
  readonly dockerd_image: string
}): readonly BuildEngineKind[] => [
  { program: buildkitProgram, image: settings.buildkit_image, preference: 20, isFetched: true },
  { program: dockerdProgram, image: settings.dockerd_image, preference: 10, isFetched: false }
]

/** The kinds of build engines that there are, those of other plugins among them. */
export class EngineKinds {
  constructor(private readonly contributed: Pick<Contributions<BuildEngineKind>, 'entries'>) {}

  /** The best first. What has another kind than its key, or one that no name can hold, is left out. */
  all(): readonly BuildEngineKind[] {
    return this.contributed
      .entries()
      .filter(
        ({ key, value }) => key === value.program.kind && kindPattern.test(key) && !otherChoices.has(key)
      )
      .map(({ value }) => value)
      .sort((a, b) => b.preference - a.preference || (a.program.kind < b.program.kind ? -1 : 1))
  }

  programs(): readonly EngineProgram[] {
    return this.all().map(({ program }) => program)
  }
}
