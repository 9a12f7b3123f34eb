import { extensionPoint } from 'busbar/sdk'

/** Says under which domain visitors reach applications, for the figures of a project. */
export interface ApplicationDomains {
  /** The main one of each application that has any, by its id; asked once for all that are shown. */
  domainsOf(applicationIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}
export const applicationDomains = extensionPoint<ApplicationDomains>('metrics.domains')

export type FigureType = 'counter' | 'gauge'

/** What a plugin counts or measures of itself, for Prometheus. */
export interface Figure {
  /** As Prometheus has names, without the prefix that is put before it: `deployments_total`. A counter's ends in `_total`. */
  readonly name: string
  readonly help: string
  readonly type: FigureType
  /** Each with other labels than the others. */
  readonly values: readonly FigureValue[]
}

export interface FigureValue {
  readonly value: number
  /** Few, and each with few values: never an id, a name that users give, or an address. */
  readonly labels?: Readonly<Record<string, string>>
}

/**
 * Figures of a plugin: they are served as `busbar_<name>`, those of a third-party plugin as `busbar_x_<plugin>_<name>`. Asked at
 * each scrape, with a limit of five seconds; at most 200 figures with 1 000 values in all.
 */
export interface FigureSource {
  figures(): readonly Figure[] | Promise<readonly Figure[]>
}
export const figureSources = extensionPoint<FigureSource>('metrics.figures')
