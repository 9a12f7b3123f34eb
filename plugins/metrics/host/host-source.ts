import { statfs } from 'node:fs/promises'
import { cpus, freemem, totalmem } from 'node:os'
import { bounded } from 'busbar/sdk'
import { type CpuTimes, type HostReading, readCpuTimes, readMemory, type Space } from './host-reading.js'
import { ProcFile } from './proc-file.js'

export interface HostSource {
  /** Never rejects: what cannot be read is null. */
  read(): Promise<HostReading>
  /** Closes what reading keeps open. */
  close(): void
}

/**
 * The machine that the platform runs on, whether it is in a container or not: Linux shows the whole machine in `/proc` there
 * too, and `/` of a container lies on the disk of its engine. Where `/proc` cannot be read, as on other systems, Node is asked.
 */
export function hostSource(proc = '/proc', root = '/'): HostSource {
  const disk = new DiskGauge(root)
  const files = { stat: new ProcFile(`${proc}/stat`), meminfo: new ProcFile(`${proc}/meminfo`) }
  return {
    read: async () => {
      const cpu = readCpuTimes(files.stat.read()) ?? cpuTimesOfNode()
      const { memory, swap } = readMemory(files.meminfo.read())
      return { cpu, memory: memory ?? memoryOfNode(), swap, disk: await disk.read() }
    },
    close: () => {
      files.stat.close()
      files.meminfo.close()
    }
  }
}

function cpuTimesOfNode(): CpuTimes | null {
  const all = cpus().map(({ times: { user, nice, sys, idle, irq } }) => ({
    busy: user + nice + sys + irq,
    total: user + nice + sys + irq + idle
  }))
  const sum = (of: keyof CpuTimes): number => all.reduce((total, one) => total + one[of], 0)
  return sum('total') > 0 ? { busy: sum('busy'), total: sum('total') } : null
}

function memoryOfNode(): Space | null {
  const total = totalmem()
  return total > 0 ? { used: Math.max(0, total - freemem()), total } : null
}

const answerMs = 250

/** A disk that hangs would take one of the few threads for files with each further question: one is asked at a time. */
class DiskGauge {
  #isAsking = false

  constructor(private readonly path: string) {}

  /** Null where it does not answer, at once while it has not answered the question before. */
  async read(): Promise<Space | null> {
    if (this.#isAsking) return null
    this.#isAsking = true
    const asked = statfs(this.path).finally(() => {
      this.#isAsking = false
    })
    try {
      const { bsize, blocks, bfree } = await bounded(async () => await asked, {
        ms: answerMs,
        what: 'the disk'
      })
      return { used: (blocks - bfree) * bsize, total: blocks * bsize }
    } catch {
      return null
    }
  }
}
