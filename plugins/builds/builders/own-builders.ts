import type { Secrets } from 'busbar/sdk'
import type { Builder } from '../api.js'
import type { AvailableEngines } from '../engines/available-engines.js'
import type { EngineUsage } from '../engines/engine-usage.js'
import type { ProjectEngines } from '../engines/project-engines.js'
import type { RegistryGate } from '../registry/registry-gate.js'
import type { Settings } from '../settings.js'
import type { ArchiveRules } from './added-archives.js'
import { BuildpacksBuilder } from './buildpacks-builder.js'
import type { ToolParts } from './command-line-tool.js'
import { DockerfileBuilder } from './dockerfile-builder.js'
import type { FetchRules } from './fetched-files.js'
import type { LabellingParts } from './labelled-image.js'
import { NixpacksBuilder } from './nixpacks-builder.js'
import { RailpackBuilder } from './railpack-builder.js'
import { StaticBuilder } from './static-builder.js'

interface BuilderParts extends ToolParts, LabellingParts {
  readonly availableEngines: AvailableEngines
  readonly engines: ProjectEngines
  readonly engineUsage: EngineUsage
  readonly fetching: FetchRules
  readonly archives: ArchiveRules
  readonly gate: RegistryGate
  readonly secrets: Pick<Secrets, 'sign'>
  readonly config: Pick<
    Settings,
    'static_image' | 'static_build_image' | 'buildpacks_builder' | 'buildkit_host' | 'railpack_frontend'
  >
}

/** The builders of this plugin, by build type. */
export function ownBuilders(parts: BuilderParts): Readonly<Record<string, Builder>> {
  const { config, fetching } = parts
  return {
    dockerfile: new DockerfileBuilder(parts),
    static: new StaticBuilder({
      ...parts,
      serverImage: config.static_image,
      buildImage: config.static_build_image
    }),
    railpack: new RailpackBuilder({
      ...parts,
      buildKitHost: config.buildkit_host,
      frontEnd: config.railpack_frontend
    }),
    buildpacks: new BuildpacksBuilder({
      ...parts,
      builderImage: config.buildpacks_builder,
      hosts: fetching.hosts
    }),
    nixpacks: new NixpacksBuilder(parts)
  }
}
