import { containerRuntime, engineInventory } from 'busbar/api/containers'
import { kernel, type StartContext } from 'busbar/sdk'
import { DiskFigures } from './disk-figures.js'
import { DockerViews } from './docker-views.js'

export const needs = {
  runtime: containerRuntime,
  inventory: engineInventory,
  clock: kernel.clock,
  resources: kernel.resources
}

/** The running plugin. */
export interface DockerPlugin {
  readonly views: DockerViews
}

export function startDocker({ use, log }: StartContext<typeof needs, unknown>): DockerPlugin {
  const figures = new DiskFigures(async () => await use.inventory.diskUse(), use.clock, log)
  return { views: new DockerViews({ ...use, figures }) }
}
