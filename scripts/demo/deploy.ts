import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, BusbarClient } from 'busbar/client'
import { WebSocket } from 'ws'

export interface ApplicationIds {
  readonly projectId: string
  readonly applicationId: string
}
export const applicationPath = '/api/projects/{projectId}/applications/{applicationId}'
const deploymentPath = `${applicationPath}/deployments/{deploymentId}` as const
type Deployment = Answer<`GET ${typeof deploymentPath}`>

interface Frame {
  readonly channel: string
  readonly event: string
  readonly data: { readonly msg: string } | null
}

interface DeployResult {
  readonly deployment: Deployment
  /** How many lines of the log came over the WebSocket while the build ran. */
  readonly liveLines: number
}

const deployLimitMs = 300_000
const pollMs = 500

/** Deploys, yields each line of the build as it comes over the WebSocket, and waits for the end. */
export async function deploy(
  client: BusbarClient,
  application: ApplicationIds,
  onLine: (line: string) => void
): Promise<DeployResult> {
  const socket = new WebSocket(`${client.url.replace(/^http/, 'ws')}/api/ws`, {
    headers: client.credential()
  })
  await once(socket, 'open')
  try {
    let liveLines = 0
    const started = await client.post(`${applicationPath}/deploy`, { params: application })
    const channel = `build-logs:${started.id}`
    socket.on('message', (message: Buffer) => {
      const frame = JSON.parse(message.toString()) as Frame
      if (frame.channel !== channel || frame.event !== 'log' || frame.data === null) return
      liveLines++
      onLine(frame.data.msg)
    })
    socket.send(JSON.stringify({ action: 'subscribe', channel }))
    const deployment = await finished(client, { ...application, deploymentId: started.id })
    return { deployment, liveLines }
  } finally {
    socket.close()
  }
}

async function finished(
  client: BusbarClient,
  params: ApplicationIds & { deploymentId: string }
): Promise<Deployment> {
  const until = performance.now() + deployLimitMs
  for (;;) {
    const deployment = await client.get(deploymentPath, { params })
    if (deployment.finished_at !== null) return deployment
    if (performance.now() > until)
      throw new Error(`the deployment is still ${deployment.status} after ${deployLimitMs / 1000} s`)
    await sleep(pollMs)
  }
}

/** What the record keeps of the log, from the first line to the evidence of a failure. */
export const recordedLines = ({ build_logs: log }: Deployment): string[] =>
  (log ?? '')
    .split('\n')
    .filter(line => line !== '')
    .map(line => (JSON.parse(line) as { msg: string }).msg)

/** From the call to the end, by the platform's own clock. */
export const durationMs = ({ started_at: start, finished_at: end }: Deployment): number =>
  new Date(end ?? start ?? 0).getTime() - new Date(start ?? 0).getTime()
