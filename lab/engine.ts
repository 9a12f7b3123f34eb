import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { closers } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { removeInstallation } from './installation.js'
import { type Skippable, skipWithout } from './requirements.js'

/** The images that tests build on; `make-images.sh` makes or pulls what is missing. */
const images = ['busybox:lab', 'node:20'] as const

let answer: Promise<string | null> | undefined

/**
 * Call it first in every test that needs a Docker Engine:
 *
 *     if (!await requireEngine(t)) return
 *
 * Without an engine the test is skipped and stderr says so. With `CI=true` it fails: there an engine
 * is part of the machine.
 */
export async function requireEngine(t: Skippable): Promise<boolean> {
  answer ??= missing()
  const reason = await answer
  if (reason === null) {
    closers.add(removeInstallation)
    return true
  }
  return skipWithout(t, { what: 'a Docker Engine', reason: `no Docker Engine: ${reason}` })
}

/**
 * For a test that goes without an engine as well, and whose platform uses one that is there: what it has made on it is
 * taken away when it closes.
 */
export function takeAwayFromEngine(): void {
  closers.add(removeWhereAnEngineIs)
}

const removeWhereAnEngineIs: typeof removeInstallation = async state => {
  if (await answers()) await removeInstallation(state)
}

const answers = async (): Promise<boolean> =>
  await new Docker().ping().then(
    () => true,
    () => false
  )

/** Why engine tests cannot run here; null when they can. */
async function missing(): Promise<string | null> {
  const engine = new Docker()
  try {
    await engine.ping()
  } catch (error) {
    return `${message(error)}. Start one (dockerd), or name one in DOCKER_HOST.`
  }
  try {
    const there = await Promise.all(
      images.map(image =>
        engine
          .getImage(image)
          .inspect()
          .then(
            () => true,
            () => false
          )
      )
    )
    if (there.includes(false)) await promisify(execFile)(join(import.meta.dirname, 'make-images.sh'))
    return null
  } catch (error) {
    return `the images ${images.join(' and ')} cannot be made: ${message(error)}`
  }
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
