import type { ConfigWarning } from 'busbar/sdk'
import type { Disk, Machine } from './admission-decision.js'
import type { Swap } from './admission-readings.js'
import { amount } from './admission-words.js'

const gibibyte = 2 ** 30
/** Of all memory. */
const leastAvailable = 0.05
/** A build and what runs beside it may need more than such a machine has for a moment. */
const needsSwapBelow = 4 * gibibyte
const leastFreeSwap = 0.1
/** Of the floor below which nothing is built. */
const nearFloor = 2

/** What is wrong with the machine, for whoever builds and runs applications on it. */
export function machineWarnings(
  { memoryBytes, availableBytes, disks }: Pick<Machine, 'memoryBytes' | 'availableBytes' | 'disks'>,
  swap: Swap | undefined,
  floorBytes: number
): ConfigWarning[] {
  return [
    ...memoryWarnings(memoryBytes, availableBytes),
    ...(swap === undefined || availableBytes === undefined ? [] : swapWarnings(memoryBytes, swap)),
    ...disks
      .filter(({ freeBytes }) => freeBytes < nearFloor * floorBytes)
      .map(disk => shortDisk(disk, floorBytes))
  ]
}

function memoryWarnings(memoryBytes: number, availableBytes: number | undefined): ConfigWarning[] {
  if (availableBytes === undefined || availableBytes >= memoryBytes * leastAvailable) return []
  return [
    {
      code: 'memory_low',
      message: `only ${amount(availableBytes)} of ${amount(memoryBytes)} of memory are available, so builds wait, and the kernel may end what runs`,
      remedy: 'give the machine more memory, limit that of applications, or stop what is not needed'
    }
  ]
}

function swapWarnings(memoryBytes: number, { totalBytes, freeBytes }: Swap): ConfigWarning[] {
  if (totalBytes === 0)
    return memoryBytes >= needsSwapBelow
      ? []
      : [
          {
            code: 'swap_missing',
            message: `the machine has ${amount(memoryBytes)} of memory and no swap, so a build that needs more for a moment ends something instead`,
            remedy:
              'add a swap file of 2 GiB or more (fallocate -l 2G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile, and a line for it in /etc/fstab)'
          }
        ]
  return freeBytes >= totalBytes * leastFreeSwap
    ? []
    : [
        {
          code: 'swap_low',
          message: `only ${amount(freeBytes)} of ${amount(totalBytes)} of swap are free: what runs needs more memory than there is`,
          remedy: 'give the machine more memory, limit that of applications, or stop what is not needed'
        }
      ]
}

const shortDisk = ({ what, path, freeBytes, isEngines }: Disk, floorBytes: number): ConfigWarning => ({
  code: isEngines ? 'engine_disk_low' : 'disk_low',
  message: `${amount(freeBytes)} are free on ${what} (${path}); below ${amount(floorBytes)} nothing is built or pulled, and what has written most is stopped`,
  remedy: isEngines
    ? 'remove images, containers and volumes that nothing needs (GET /api/docker/overview says how much that gives back), or enlarge the disk'
    : 'remove what is not needed there, or enlarge the disk'
})
