import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { readIfPresent } from './binaries.js'
import { errorCode } from './file-error.js'

/** Who uses a database folder: written beside it, as PostgreSQL's own lock names only the server. */
export interface Claim {
  release(): Promise<void>
}

const claimedHere = new Set<string>()

/** Claims a folder for this process, or says which process has it. */
export async function claim(path: string): Promise<Claim | { readonly pid: number }> {
  if (claimedHere.has(path)) return { pid: process.pid }
  claimedHere.add(path)
  const fresh = `${path}.${process.pid}`
  try {
    for (let attempt = 0; attempt < 20; attempt++) {
      await writeFile(fresh, `${process.pid}\n${(await startOf(process.pid)) ?? ''}\n`, { mode: 0o600 })
      // A link appears with its content or not at all, and for one process only.
      if (await link(fresh, path).then(() => true, isTaken)) {
        return {
          release: async () => {
            claimedHere.delete(path)
            await rm(path, { force: true })
          }
        }
      }
      const found = await readIfPresent(path)
      const owner = found === undefined ? undefined : await ownerOf(found)
      if (owner !== undefined) {
        claimedHere.delete(path)
        return { pid: owner }
      }
      if (found !== undefined) await discard(path, found)
    }
    throw new Error(`could not write ${path}: other processes keep writing it`)
  } catch (error) {
    claimedHere.delete(path)
    throw error
  } finally {
    await rm(fresh, { force: true })
  }
}

function isTaken(error: unknown): false {
  if (errorCode(error) !== 'EEXIST') throw error
  return false
}

/** The process that made a claim, while it lives. */
async function ownerOf(text: string): Promise<number | undefined> {
  const [pid, start] = text.split('\n')
  const owner = Number(pid)
  const isOther = owner > 0 && owner !== process.pid && isAlive(owner)
  return isOther && (start === '' || start === (await startOf(owner))) ? owner : undefined
}

/** Removes a claim whose process is dead, and not one that was made since it was read. */
async function discard(path: string, text: string): Promise<void> {
  const aside = `${path}.${process.pid}.old`
  await rename(path, aside).catch(() => {})
  if ((await readIfPresent(aside)) !== text) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** When a process started, as the system tells it: tells a process from a later one with the same id. */
async function startOf(pid: number): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The second field is the program's name in brackets and may hold anything; the start is the 22nd.
  return line?.slice(line.lastIndexOf(')') + 2).split(' ')[19]
}

/**
 * What the lock file in the data folder names: the server while it lives, `recycled` when its id now
 * belongs to a program that is not PostgreSQL (after a restart of the machine), otherwise nothing.
 */
export async function lockedBy(data: string): Promise<number | 'recycled' | undefined> {
  const pid = Number((await readIfPresent(`${data}/postmaster.pid`))?.split('\n')[0])
  if (!(pid > 0) || !isAlive(pid)) return undefined
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'postgres')
  return name.trim() === 'postgres' ? pid : 'recycled'
}

/** True when a process accepts connections on the socket. */
export const isListening = async (socketFile: string): Promise<boolean> =>
  await new Promise(resolve => {
    const socket = connect(socketFile)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => {
      resolve(false)
    })
  })
