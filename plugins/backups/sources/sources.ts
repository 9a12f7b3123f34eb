import { askContribution, type Contributions } from 'busbar/sdk'
import type { BackupResource, BackupSource, MadeResource, SourceKind } from '../api.js'
import { problems } from '../problems.js'

const lookMs = 20_000

/** What other plugins contribute, as it is asked. */
export class Sources {
  constructor(private readonly contributed: Contributions<BackupSource, SourceKind>) {}

  /** Throws a `Problem` while its plugin is off. */
  get(kind: SourceKind): BackupSource {
    const source = this.contributed.get(kind)
    if (source === undefined) throw problems.sourceOff({ kind })
    return source
  }

  isThere(kind: SourceKind): boolean {
    return this.contributed.get(kind) !== undefined
  }

  /** Throws a `Problem` where it is not there. */
  async resource(kind: SourceKind, id: string, projectId: string): Promise<BackupResource> {
    const found = await this.look(kind, id, projectId)
    if (found === undefined) throw problems.resourceGone({ kind, id })
    return found
  }

  async look(kind: SourceKind, id: string, projectId: string): Promise<BackupResource | undefined> {
    const source = this.get(kind)
    return await this.ask(kind, async () => await source.find(id, projectId))
  }

  async heir(
    kind: SourceKind,
    of: Parameters<NonNullable<BackupSource['heir']>>[0]
  ): Promise<MadeResource | 'ended' | undefined> {
    const source = this.get(kind)
    return await this.ask(kind, async () => await source.heir?.(of))
  }

  /** For a look, that is to be over soon. */
  async ask<T>(kind: SourceKind, work: () => Promise<T>): Promise<T> {
    return await askContribution(work, { ms: lookMs, what: `the source of backups of a ${kind}` })
  }
}
