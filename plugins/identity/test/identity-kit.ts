import { EventEmitter } from 'node:events'
import * as argon2 from '@node-rs/argon2'
import {
  type access,
  cookieNames,
  type Database,
  type Events,
  isProblem,
  type Problem,
  type Resolved,
  type SessionCaller,
  type Tx
} from 'busbar/sdk'
import { createDatabase, settingsFrom, testClock } from 'busbar/sdk/testing'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { Authenticate, Authentication } from '../../../core/auth/authentication.js'
import { createAuthenticator } from '../../../core/auth/authenticator.js'
import { CredentialCache } from '../../../core/auth/credential-cache.js'
import { createCredentials } from '../../../core/auth/credentials.js'
import { migrate } from '../../../core/database/migrations.js'
import { pluginDatabase } from '../../../core/database/plugin-database.js'
import { openPostgres } from '../../../core/database/postgres.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { keyringOf } from '../../../core/secrets/keyring.js'
import { secretsFor } from '../../../core/secrets/secrets.js'
import { accountsOf } from '../accounts.js'
import type { Client, Identity, SessionGrant } from '../api.js'
import { CredentialStore } from '../credential-store.js'
import identityPlugin from '../index.js'
import { InstanceStore } from '../instance-store.js'
import { PasswordHasher } from '../passwords/password-hasher.js'
import { sessionPolicyOf } from '../policy.js'
import { settings } from '../settings.js'
import { SetupAccess } from '../users/setup-access.js'
import { UserStore } from '../users/user-store.js'

const log = pino({ level: 'silent' })
export const home: Client = { ip: '203.0.113.1', userAgent: 'Firefox' }
export const elsewhere: Client = { ip: '198.51.100.7', userAgent: 'curl' }
export const admin = { email: 'ada@example.com', password: 'correct horse' }

const { migrations = [] } = identityPlugin

/** Identity as one process has it, with the guard that asks it. */
interface Process extends Identity {
  readonly authenticate: Authenticate
}

/** Identity over a database of the test's own, on a clock that the test moves. */
export async function identityKit(t: Test, environment: Record<string, string> = {}) {
  const { url, drop } = await createDatabase({
    template: {
      key: `identity${JSON.stringify(migrations)}`,
      async prepare(template) {
        const postgres = await openPostgres({ url: template, log })
        const { failed } = await migrate(postgres, [{ plugin: 'identity', schema: 'identity', migrations }], {
          version: '0.0.0',
          log
        })
        await postgres.close()
        for (const error of failed.values()) throw error
      }
    }
  })
  const postgres = await openPostgres({ url, log })
  t.teardown(async () => {
    await postgres.close()
    await drop()
  })
  const clock = testClock()
  const wire = new EventEmitter()
  const emitted: Array<readonly [event: string, data: unknown]> = []
  const events: Events = {
    emit: async ({ id }, data) => void emitted.push([id, data]),
    emitEach: async ({ id }, facts) => void emitted.push(...facts.map(data => [id, data] as const))
  }
  const queries: Queries = { hot: 0, touches: 0, fail: undefined }
  const argon = { hashes: 0, verifications: 0 }
  const database = watched(pluginDatabase(postgres, 'identity'), queries)
  const secrets = secretsFor(
    keyringOf(new Map([['k', Buffer.alloc(32, 1)]]), 'k'),
    createRedactor(),
    'identity'
  )

  /** One more process on the same database. What it signals reaches the others while `wire` is joined. */
  const start = (): Process => {
    const cache = new CredentialCache(10_000)
    const signals = {
      async signal(topic: string, data: string, tx?: Tx) {
        if (tx === undefined) wire.emit(topic, data)
        else database.afterCommit(tx, () => wire.emit(topic, data))
      },
      onSignal(topic: string, listener: (data: string) => void) {
        wire.on(topic, listener)
        return () => {
          wire.off(topic, listener)
        }
      },
      onReconnect(listener: () => void) {
        wire.on('reconnect', listener)
        return () => {
          wire.off('reconnect', listener)
        }
      }
    }
    const credentials = createCredentials({ cache, signals, afterCommit: database.afterCommit })
    const source = new CredentialStore(database)
    const setup = new SetupAccess({
      users: new UserStore(database),
      instance: new InstanceStore(database),
      policy: { kind: 'open' }
    })
    const sources: Resolved<typeof access>['credentials'] = {
      get: () => source,
      keys: () => ['identity'],
      entries: () => []
    }
    return {
      ...accountsOf({
        db: database,
        events,
        secrets,
        clock,
        credentials,
        setup,
        policy: sessionPolicyOf(settingsFrom(settings, environment)),
        hasher: counted(argon)
      }),
      authenticate: createAuthenticator({ cache, sources, clock, log })
    }
  }
  return { identity: start(), start, clock, database, queries, argon, wire, emitted }
}

/** Counts what is computed, which is what takes the time of a login. */
const counted = (argon: { hashes: number; verifications: number }) =>
  new PasswordHasher({
    async hash(...given) {
      argon.hashes++
      return await argon2.hash(...given)
    },
    async verify(...given) {
      argon.verifications++
      return await argon2.verify(...given)
    }
  })

/** Counts what the hot path asks the database and what it writes; `fail` makes it fail. */
interface Queries {
  hot: number
  touches: number
  fail: Error | undefined
}

function watched(database: Database, queries: Queries): Database {
  return {
    ...database,
    statement(name, text) {
      const run = database.statement<any>(name, text)
      return async (args, tx) => {
        if (queries.fail !== undefined) throw queries.fail
        if (name.includes('touch')) queries.touches++
        else queries.hot++
        return await run([...args], tx)
      }
    }
  }
}

/**
 * Runs all of `race` up to the rows or tables that `lock` takes, and lets them go on together once as
 * many as `waiting` stand there: what they checked before is as old as it can be.
 */
export async function raceAt<T>(
  database: Database,
  lock: string,
  waiting: number,
  race: () => Array<Promise<T>>
): Promise<Array<PromiseSettledResult<T>>> {
  return await database
    .transaction(async tx => {
      await database.sql(lock, [], tx)
      const results = Promise.allSettled(race())
      const blocked = async () =>
        (
          await database.sql(
            'select 1 from pg_stat_activity where datname = current_database() and wait_event_type = ?',
            ['Lock']
          )
        ).length
      for (let tries = 0; (await blocked()) < waiting; tries++) {
        if (tries > 500) throw new Error(`${await blocked()} wait instead of ${waiting}`)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
      return { results }
    })
    .then(async ({ results }) => await results)
}

/** Sets up the first admin and signs in. */
export async function signedInAdmin(
  identity: Process,
  client = home
): Promise<{ grant: SessionGrant; caller: SessionCaller }> {
  await identity.setUp(admin)
  return await signIn(identity, admin, client)
}

export async function signIn(
  identity: Process,
  account: { email: string; password: string },
  client = home
): Promise<{ grant: SessionGrant; caller: SessionCaller }> {
  const outcome = await identity.login(account, client)
  if (outcome.kind !== 'signedIn') throw new Error('a second factor was asked for')
  return { grant: outcome.grant, caller: await sessionOf(identity, outcome.grant) }
}

export async function sessionOf(identity: Process, grant: SessionGrant): Promise<SessionCaller> {
  const found = await showSession(identity, grant)
  if (found.kind !== 'caller' || found.caller.kind !== 'session') throw new Error(`no session: ${found.kind}`)
  return found.caller
}

export const showSession = async (identity: Process, { result }: SessionGrant): Promise<Authentication> =>
  await identity.authenticate({
    authorization: undefined,
    cookie: `theme=dark; ${cookieNames.session}=${result.token}`
  })

export const showToken = async (identity: Process, value: string): Promise<Authentication> =>
  await identity.authenticate({ authorization: `Bearer ${value}`, cookie: undefined })

/** The headers a browser with this session sends to the refresh route. */
export function refreshHeaders({ cookies }: SessionGrant) {
  const csrf = cookies.find(cookie => cookie.name === cookieNames.csrf)?.value ?? ''
  return { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '), 'x-csrf-token': csrf }
}

/** `status: message` of the problem that `run` ends with. */
export async function refusal(run: Promise<unknown>): Promise<string> {
  const problem = await problemOf(run)
  return `${problem.status}: ${problem.message}`
}

export async function problemOf(run: Promise<unknown>): Promise<Problem> {
  try {
    await run
  } catch (error) {
    if (isProblem(error)) return error
    throw error
  }
  throw new Error('nothing was refused')
}
