import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ContainerRuntime, machineFactsMs } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext } from '../api.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { problems } from '../problems.js'

interface RunnableParts {
  readonly runtime: Pick<ContainerRuntime, 'info'>
  readonly emulators: () => Promise<readonly string[]>
}

/**
 * Throws when an image that was built is not made for what was asked for, or when no container of it could start on the machine
 * that is to run it. `platform`: what was asked for.
 */
export async function checkRuns(
  { runtime, emulators }: RunnableParts,
  { image, platform }: { readonly image: ImageInfo; readonly platform?: string },
  { log }: Pick<BuildContext, 'log'>
): Promise<void> {
  if (platform !== undefined && image.platform !== undefined && !isForPlatform(image.platform, platform))
    throw problems.otherPlatformMade({ wanted: platform, made: image.platform })
  const { foreignPlatform } = image
  if (foreignPlatform === undefined) return
  const { place, platform: machine } = await runtime.info({ maxAgeMs: machineFactsMs })
  const architecture = foreignPlatform.split('/')[1] ?? ''
  if (place === 'here') {
    const entries = await emulators()
    if (!entries.some(entry => emulates(entry, architecture)))
      throw problems.imageNotRunnable({ made: foreignPlatform, machine, architecture })
    log({
      level: 'info',
      msg: `The image is made for ${foreignPlatform}: this machine (${machine}) emulates it`
    })
  } else
    log({
      level: 'warning',
      msg: `The image is made for ${foreignPlatform}, and the engine's machine is ${machine}: it starts only if an emulator for ${architecture} is registered there`
    })
}

/** As programs say what they are made for, in the order of their bytes. */
const machines: Readonly<Record<string, string>> = {
  amd64: '3e00',
  '386': '0300',
  arm64: 'b700',
  arm: '2800',
  ppc64le: '1500',
  s390x: '0016',
  riscv64: 'f300',
  loong64: '0201'
}

/** Whether an entry of binfmt_misc says that programs of an architecture are run by an emulator. */
export function emulates(entry: string, architecture: string): boolean {
  const lines = entry.split('\n')
  const magic = lines.find(line => line.startsWith('magic '))?.slice('magic '.length) ?? ''
  return (
    lines.includes('enabled') &&
    lines.includes('offset 0') &&
    magic.startsWith('7f454c46') &&
    magic.slice(36, 40) === machines[architecture]
  )
}

const binfmtFolder = '/proc/sys/fs/binfmt_misc'

/** What the kernel of this machine has registered; nothing where that cannot be seen. */
export async function binfmtEntries(): Promise<readonly string[]> {
  const names = await readdir(binfmtFolder).catch(() => [])
  return await Promise.all(
    names
      // The others are commands.
      .filter(name => name !== 'register' && name !== 'status')
      .map(async name => await readFile(join(binfmtFolder, name), 'utf8').catch(() => ''))
  )
}
