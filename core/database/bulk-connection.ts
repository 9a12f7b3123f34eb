import type { Readable, Writable } from 'node:stream'
import type { BulkConnection } from 'busbar/sdk'
import pg from 'pg'
import copyStreams from 'pg-copy-streams'
import { whenLate } from '../clock/waits.js'
import { connectionConfig } from './connection-config.js'
import { bulkConnectionName } from './lock-waits.js'
import { connectTimeoutMs } from './problems.js'

const endWithinMs = 3_000

/**
 * A connection outside of the pool, without its limits: for work that takes as long as the data is large. What is
 * undecided at its end is rolled back by the server.
 */
export async function openBulkConnection(url: string): Promise<BulkConnection> {
  const client = new pg.Client(
    connectionConfig(url, {
      application_name: bulkConnectionName,
      connectionTimeoutMillis: connectTimeoutMs,
      idle_in_transaction_session_timeout: 0,
      statement_timeout: 0,
      lock_timeout: 0,
      keepAlive: true
    })
  )
  // A connection that breaks fails what is under way; without a listener it would end the process.
  client.on('error', () => {})
  await client.connect()
  // Texts mean the same whatever the server and the role are set to.
  await client.query(
    "set client_encoding = 'UTF8'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set bytea_output = 'hex'; set extra_float_digits = 1; set row_security = off; set search_path = pg_catalog; set standard_conforming_strings = on"
  )
  return {
    query: async <Row extends object>(text: string, values?: readonly unknown[]) => {
      const result = await client.query<Row>(text, values === undefined ? undefined : [...values])
      return result.rows
    },
    copyOut: (text: string): Readable => client.query(copyStreams.to(text)),
    copyIn: (text: string): Writable => client.query(copyStreams.from(text)),
    close: async () => {
      await whenLate(
        client.end().catch(() => {}),
        endWithinMs,
        () => {
          cut(client)
        }
      )
    },
    cut: () => {
      cut(client)
    }
  }
}

function cut(client: pg.Client): void {
  client.connection.stream.destroy()
}
