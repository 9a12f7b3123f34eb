/** How long a process group may clean up after SIGTERM before SIGKILL. */
export const killGraceMs = 2000

/** The groups of all processes we have started and not yet seen the end of. */
const live = new Set<number>()
let isHooked = false

/** Registers the group for the case that this process exits before it. */
export function trackGroup(groupId: number): void {
  if (!isHooked) {
    isHooked = true
    process.on('exit', () => {
      for (const id of live) signalGroup(id, 'SIGKILL')
    })
  }
  live.add(groupId)
}

export const forgetGroup = (groupId: number): void => {
  live.delete(groupId)
}

export function signalGroup(groupId: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-groupId, signal)
  } catch {
    // no process of the group is left
  }
}
