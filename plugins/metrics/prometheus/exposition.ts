import type { Contributions, Instance, Log, Statistics } from 'busbar/sdk'
import type { FigureSource } from '../api.js'
import { contributedFigures } from './contributed-figures.js'
import { gauge } from './figure.js'
import { platformFigures } from './platform-figures.js'
import type { ProcessFigures } from './process-figures.js'
import { prometheusText } from './text-format.js'

interface ExpositionParts {
  readonly statistics: Statistics
  readonly process: ProcessFigures
  readonly sources: Contributions<FigureSource>
  readonly instance: Pick<Instance, 'version'>
  readonly log: Log
}

/** All figures, as they are now. */
export class Exposition {
  #reading: Promise<{ readonly text: string; readonly type: string }> | undefined

  constructor(private readonly parts: ExpositionParts) {}

  /** Who asks while it is being made gets the same; what has built-in names goes before what others give the same name. */
  async read(): Promise<{ readonly text: string; readonly type: string }> {
    this.#reading ??= this.#make().finally(() => {
      this.#reading = undefined
    })
    return await this.#reading
  }

  async #make(): Promise<{ readonly text: string; readonly type: string }> {
    const { statistics, process, sources, instance, log } = this.parts
    const [platform, own] = await Promise.all([statistics.read(), process.read()])
    const builtIn = new Set(platform.plugins.flatMap(({ id, isBuiltIn }) => (isBuiltIn ? [id] : [])))
    const contributed = await contributedFigures({ sources, isBuiltIn: id => builtIn.has(id), log })
    const figures = [
      gauge('busbar_info', 'The release that runs', [{ labels: { version: instance.version }, value: 1 }]),
      ...own,
      ...platformFigures(platform)
    ]
    const names = new Set(figures.map(({ name }) => name))
    return await prometheusText([...figures, ...contributed.filter(({ name }) => !names.has(name))])
  }
}
