import {
  askNow,
  bounded,
  type Contributions,
  cutText,
  type Log,
  type PlatformStatistics,
  type Statistics
} from 'busbar/sdk'
import type { PlatformPart } from './api.js'
import { problems } from './problems.js'
import type { PlatformLogs, RestartedService, ServerServices } from './schemas.js'

interface PartServiceParts {
  readonly contributed: Contributions<{ parts(): readonly PlatformPart[] }, 'proxy' | 'engine' | 'builder'>
  readonly statistics: Statistics
  /** Takes secrets out of what others say. */
  readonly clean: (text: string) => string
  readonly log: Log
}

const lookMs = 5_000
const actMs = 25_000
const mostLines = 1_000
/** Of a log; what is older is left out. */
const longestLog = 1_000_000
const longestFault = 300
/** In the order in which they are shown. */
const order: readonly string[] = ['proxy', 'engine', 'builder']

/** What the installation consists of beside the platform's own code, and how it is. */
export class PartService {
  constructor(private readonly deps: PartServiceParts) {}

  async services(): Promise<ServerServices> {
    const services = await Promise.all(this.#parts().map(async part => await this.#shown(part)))
    return {
      services,
      total: services.length,
      healthy: services.filter(({ status }) => status === 'running').length
    }
  }

  async restart(id: string | undefined): Promise<RestartedService> {
    const able = this.#parts().filter(part => part.restart !== undefined)
    const part = able.find(one => one.id === id)
    if (part === undefined) throw problems.noRestart({ service: shown(id), possible: named(able) })
    await this.#act(part, 'restarting', async () => await part.restart?.())
    return { status: 'restarted', service: part.id }
  }

  async logs(id: string | undefined): Promise<PlatformLogs> {
    const able = this.#parts().filter(part => part.logs !== undefined)
    const part = able.find(one => one.id === id)
    if (part === undefined) throw problems.noLogs({ service: shown(id), possible: named(able) })
    const text = await this.#act(part, 'reading the log of', async () => await part.logs?.(mostLines))
    return { service: part.id, content: this.deps.clean(lastLines(text ?? '')) }
  }

  #parts(): readonly PlatformPart[] {
    const { contributed, log } = this.deps
    const entries = contributed.entries().toSorted((a, b) => order.indexOf(a.key) - order.indexOf(b.key))
    const told = entries.flatMap(
      entry =>
        askNow(entry, value => value.parts(), {
          what: 'the parts of the installation',
          takes: 'a list',
          take: answer => (Array.isArray(answer) ? (answer as readonly PlatformPart[]) : undefined),
          log
        }) ?? []
    )
    return [...told, ...this.#ownParts()]
  }

  /** Both are in PostgreSQL: the figures of jobs are missing while that does not answer. */
  #ownParts(): readonly PlatformPart[] {
    let looked: Promise<PlatformStatistics> | undefined
    const fault = async (): Promise<string | null> => {
      looked ??= this.deps.statistics.read()
      return (await looked).jobs === undefined ? 'the database does not answer' : null
    }
    return [
      { id: 'postgres', name: 'PostgreSQL', description: 'Keeps all that the platform stores', fault },
      { id: 'queue', name: 'Job queue', description: 'Keeps what is to be done, in PostgreSQL', fault }
    ]
  }

  async #shown({ id, name, description, fault }: PlatformPart): Promise<ServerServices['services'][number]> {
    const reason = await bounded(async () => await fault(), { ms: lookMs, what: name }).catch(
      (error: unknown) => {
        this.deps.log.info({ err: error, service: id }, 'a part of the installation does not work')
        return error instanceof Error ? error.message : String(error)
      }
    )
    return reason === null
      ? { name, description, status: 'running' }
      : {
          name,
          description: this.deps.clean(cutText(`${description}: ${reason}`, longestFault)),
          status: 'error'
        }
  }

  async #act<T>({ id, name }: PlatformPart, what: string, act: () => Promise<T>): Promise<T> {
    try {
      return await bounded(act, { ms: actMs, what: `${what} ${name}` })
    } catch (error) {
      this.deps.log.warn({ err: error, service: id }, 'a part of the installation could not be asked')
      const reason = error instanceof Error ? error.message : String(error)
      throw problems.partRefused({ service: id, reason: this.deps.clean(cutText(reason, longestFault)) })
    }
  }
}

const shown = (id: string | undefined): string => JSON.stringify(cutText(id ?? '', 50))
const named = (parts: readonly PlatformPart[]): string =>
  parts.length === 0 ? 'none' : parts.map(({ id }) => id).join(', ')

function lastLines(text: string): string {
  const end = text.slice(-longestLog)
  const lines = end.split('\n')
  return lines.length <= mostLines + 1 ? end : lines.slice(-(mostLines + 1)).join('\n')
}
