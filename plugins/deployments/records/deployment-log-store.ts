import type { Database } from 'busbar/sdk'
import type { DeploymentStatus } from '../api.js'
import { isThere } from './deployment-store.js'
import { wholeLinesAtEnd } from './log-end.js'

/** A piece of a build log: whole lines of newline-delimited JSON. */
export interface LogChunk {
  readonly seq: number
  readonly is_tail: boolean
  readonly lines: number
  readonly bytes: number
}
export interface WrittenChunk extends LogChunk {
  readonly text: string
}

/** What was left out between the head and the tail of a log. */
export interface LogCut {
  readonly lines: number
  readonly bytes: number
}

/** How far a deployment and its log are. */
export interface LogProgress {
  readonly id: string
  readonly status: DeploymentStatus
  readonly error_message: string | null
  /** Behind the last piece. */
  readonly next_seq: number
}

export class DeploymentLogStore {
  readonly #db: Database
  constructor(db: Database) {
    this.#db = db
  }

  /** What is there already, without the text. */
  async chunks(deploymentId: string): Promise<LogChunk[]> {
    return await this.#db.sql<LogChunk>(
      'select seq, is_tail, lines, bytes from $schema.deployment_log where deployment_id = ? order by seq',
      [deploymentId]
    )
  }

  /** Adds a piece, drops tail pieces below `dropBelow`, and counts what is gone. */
  async append(
    deploymentId: string,
    chunk: WrittenChunk,
    dropBelow: number | undefined,
    cut: LogCut
  ): Promise<void> {
    await this.#db.sql(
      `
      with dropped as (
        delete from $schema.deployment_log where deployment_id = :deploymentId and is_tail and seq < :dropBelow
      ), counted as (
        update $schema.deployment set log_cut_lines = log_cut_lines + :cutLines, log_cut_bytes = log_cut_bytes + :cutBytes
        where id = :deploymentId and :cutLines > 0
      )
      insert into $schema.deployment_log (deployment_id, seq, is_tail, lines, bytes, text)
      values (:deploymentId, :seq, :is_tail, :lines, :bytes, :text)`,
      { deploymentId, ...chunk, dropBelow: dropBelow ?? 0, cutLines: cut.lines, cutBytes: cut.bytes }
    )
  }

  /** The pieces from `fromSeq` on, in order: the first `limit` of them, or all. */
  async read(deploymentId: string, fromSeq: number, limit?: number): Promise<WrittenChunk[]> {
    return await this.#db.sql<WrittenChunk>(
      'select * from $schema.deployment_log where deployment_id = ? and seq >= ? order by seq limit ?',
      [deploymentId, fromSeq, limit ?? null]
    )
  }

  /** The last whole lines of each log that has any, `maxBytes` of each at most. */
  async ends(deploymentIds: readonly string[], maxBytes: number): Promise<ReadonlyMap<string, string>> {
    // The text of pieces before the end is not even read: it lies apart from its row.
    const rows = await this.#db.sql<{ id: string; text: string }>(
      `
      select deployment_id as id, right(string_agg(text, '' order by seq), :characters) as text
      from (
        select deployment_id, seq, text, sum(bytes) over (partition by deployment_id order by seq desc) - bytes as behind
        from $schema.deployment_log where deployment_id = any(:deploymentIds)
      ) as piece
      where behind < :maxBytes group by deployment_id`,
      // One more, by which a text that was cut has more bytes than it may.
      { deploymentIds, maxBytes, characters: maxBytes + 1 }
    )
    return new Map(rows.map(({ id, text }) => [id, wholeLinesAtEnd(text, maxBytes)]))
  }

  async cut(deploymentId: string): Promise<LogCut> {
    const [row] = await this.#db.sql<LogCut>(
      'select log_cut_lines as lines, log_cut_bytes as bytes from $schema.deployment where id = ?',
      [deploymentId]
    )
    return row ?? { lines: 0, bytes: 0 }
  }

  async nextSeq(deploymentId: string): Promise<number> {
    const [row] = await this.#db.sql<{ next: number }>(
      'select coalesce(max(seq), -1) + 1 as next from $schema.deployment_log where deployment_id = ?',
      [deploymentId]
    )
    return row?.next ?? 0
  }

  /** Without those whose application is being deleted. */
  async progress(deploymentIds: readonly string[]): Promise<LogProgress[]> {
    return await this.#db.sql<LogProgress>(
      `
      select id, status, error_message,
        coalesce((select max(seq) from $schema.deployment_log where deployment_id = deployment.id), -1) + 1 as next_seq
      from $schema.deployment as deployment where id = any(:deploymentIds) and ${isThere}`,
      { deploymentIds }
    )
  }

  /** Logs and steps of all but the newest deployments of an application; their records stay. */
  async removeOld(applicationId: string, keep: number): Promise<void> {
    await this.#db.sql(
      `
      with old as materialized (
        select id from $schema.deployment where application_id = ? and status in ('success', 'failed') order by started_at desc, id desc offset ?
      ), steps as (delete from $schema.build_step where deployment_id in (select id from old))
      delete from $schema.deployment_log where deployment_id in (select id from old)`,
      [applicationId, keep]
    )
  }
}
