import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { ApiClient } from './api-client.js'

export interface Deployment {
  readonly id: string
  readonly status: string
  readonly error_message: string | null
  readonly commit_sha: string | null
  readonly health_status: string | null
  readonly build_logs: string | null
  readonly build_started_at: string | null
  readonly build_ended_at: string | null
  readonly started_at: string
  readonly finished_at: string | null
}

interface Frame { readonly channel: string, readonly event: string, readonly data: { readonly msg: string } | null }

export interface DeployResult {
  readonly deployment: Deployment
  /** How many lines of the log came over the WebSocket while the build ran. */
  readonly liveLines: number
}

const deployLimitMs = 300_000
const pollMs = 500

/** Deploys, hands on each line of the build as the WebSocket brings it, and waits for the end. */
export async function deploy (client: ApiClient, application: string, onLine: (line: string) => void): Promise<DeployResult> {
  const socket = new WebSocket(`${client.url.replace(/^http/, 'ws')}/api/ws`, { headers: client.headers })
  await once(socket, 'open')
  try {
    let liveLines = 0
    const started = await client.post<Deployment>(`${application}/deploy`)
    const channel = `build-logs:${started.id}`
    socket.on('message', (message: Buffer) => {
      const frame = JSON.parse(message.toString()) as Frame
      if (frame.channel !== channel || frame.event !== 'log' || frame.data === null) return
      liveLines++
      onLine(frame.data.msg)
    })
    socket.send(JSON.stringify({ action: 'subscribe', channel }))
    const deployment = await finished(client, `${application}/deployments/${started.id}`)
    return { deployment, liveLines }
  } finally {
    socket.close()
  }
}

async function finished (client: ApiClient, path: string): Promise<Deployment> {
  const until = performance.now() + deployLimitMs
  for (;;) {
    const deployment = await client.get<Deployment>(path)
    if (deployment.finished_at !== null) return deployment
    if (performance.now() > until) throw new Error(`the deployment is still ${deployment.status} after ${deployLimitMs / 1000} s`)
    await sleep(pollMs)
  }
}

/** What the record keeps of the log, from the first line to the evidence of a failure. */
export const recordedLines = ({ build_logs: log }: Deployment): string[] =>
  (log ?? '').split('\n').filter(line => line !== '').map(line => (JSON.parse(line) as { msg: string }).msg)

/** From the call to the end, by the platform's own clock. */
export const durationMs = ({ started_at: start, finished_at: end }: Deployment): number =>
  new Date(end ?? start).getTime() - new Date(start).getTime()
