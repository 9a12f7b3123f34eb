import { randomBytes } from 'node:crypto'
import { chmod, lchown, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Account } from './account.js'
import { readIfPresent } from './binaries.js'
import { errorCode } from './file-error.js'

/*
 * Who gets into the database: who knows the password of its only role. It lies in a file that this process's user alone
 * can read. Until version 0.1 everybody who could run as `nobody` was let in; such a folder is taken over at start.
 */

export const role = 'postgres'
const withPassword = `# Written by the platform. The password is in the file beside this folder.
local all all scram-sha-256
host all all all scram-sha-256
`
/** For the moments in which a password is set: the socket lies in a folder that its own user alone may enter. */
const withoutPassword = `local all ${role} trust\n`
/** Stretching is for passwords that can be guessed; of 256 random bits it only makes each new connection slower. */
export const scramIterations = 1
const closingLimitMs = 5_000

/** The password of the database at `data`; made, and written down, when there is none yet. */
export async function readPassword(
  data: string
): Promise<{ readonly password: string; readonly isNew: boolean }> {
  const path = `${data}.password`
  const found = (await readIfPresent(path))?.trim()
  if (found !== undefined && found !== '') {
    await chmod(path, 0o600)
    return { password: found, isNew: false }
  }
  const password = randomBytes(32).toString('base64url')
  await replaceFile(path, `${password}\n`, {})
  return { password, isNew: true }
}

/**
 * Before the server of a folder starts that has been there before. True when it does not ask for this password: then it
 * lets in without one, and is to be closed as soon as it answers.
 */
export async function prepareAccess(
  account: Account,
  data: string,
  secret: { readonly isNew: boolean }
): Promise<boolean> {
  const rules = join(data, 'pg_hba.conf')
  const isOpen = secret.isNew || (await readFile(rules, 'utf8')) !== withPassword
  if (isOpen) await replaceFile(rules, withoutPassword, account)
  return isOpen
}

/** The rules of a folder that initdb has made with the password. */
export const writeRules = async (account: Account, data: string): Promise<void> => {
  await replaceFile(join(data, 'pg_hba.conf'), withPassword, account)
}

/** Sets the password of a server that answers, and sees that it asks for it from now on. */
export async function closeAccess(
  account: Account,
  data: string,
  { host, password }: { readonly host: string; readonly password: string }
): Promise<void> {
  const connection = { host, user: role, database: role, password }
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query("set password_encryption = 'scram-sha-256'")
    await client.query(`set scram_iterations = ${scramIterations}`)
    await client.query(`alter role ${role} password ${client.escapeLiteral(password)}`)
    await writeRules(account, data)
    await client.query('select pg_reload_conf()')
  } finally {
    await client.end().catch(() => {})
  }
  for (
    const end = Date.now() + closingLimitMs;
    await letsIn({ ...connection, password: 'not the password' });
    await sleep(10)
  ) {
    if (Date.now() > end)
      throw new Error(
        `the database in ${data} does not ask for its password: look at the rules in its pg_hba.conf`
      )
  }
}

/** Whether a server that answers takes this password. What cannot be asked counts as letting in. */
async function letsIn(connection: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  return await client.connect().then(
    async () => {
      await client.end().catch(() => {})
      return true
    },
    (error: unknown) => errorCode(error) !== '28P01'
  )
}

/**
 * Replaces a file at once, for its owner alone. The folder may belong to the database's user: the new file must not be
 * one that was there before, nor a link to somewhere.
 */
async function replaceFile(
  path: string,
  text: string,
  { uid, gid }: { readonly uid?: number; readonly gid?: number }
): Promise<void> {
  const fresh = `${path}.${randomBytes(8).toString('hex')}`
  try {
    await writeFile(fresh, text, { flag: 'wx', mode: 0o600 })
    if (uid !== undefined && gid !== undefined) await lchown(fresh, uid, gid)
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
}
