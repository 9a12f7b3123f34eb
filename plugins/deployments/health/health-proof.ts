import { connect } from 'node:net'
import type { HealthCheck } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, isProblem, type Problem } from 'busbar/sdk'
import { DeployFailure } from '../rollout/deploy-failure.js'
import { askHttp } from './http-check.js'

/** Grows slowly: a pause that doubles would be as long as what it waits for. So it is a tenth of that. */
const firstPollMs = 5
const pauseGrowth = 1.1
const longestPollMs = 2000
const portMs = 10_000
const aliveMs = 2000
/** An engine that is started anew is back by then, with containers that may have lived on. */
const engineAwayMs = 15_000
/** By then the exit watch has found out why a process ended. */
const explainedMs = 5000
/** Where servers usually listen: looked at to say what is wrong with the port. */
const usualPorts = [80, 3000, 8000, 8080, 5000, 4000, 3001, 8888, 9000, 5173, 8081, 443]

interface ProofRequest {
  readonly check: HealthCheck
  readonly containerId: string
  readonly port: number
  /** False when neither the application nor its image names a port: it may not listen at all. */
  readonly isPortKnown: boolean
}

export interface HealthProof {
  readonly status: 'passing' | 'skipped'
  readonly message: string
}

interface Tools {
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Resolves when the container may get traffic; rejects with a `DeployFailure` that says why it may not. */
export async function proveHealthy(proof: ProofRequest, tools: Tools): Promise<HealthProof> {
  switch (proof.check.type) {
    case 'http':
      return await proveByHttp(proof, proof.check, tools)
    case 'command':
      return await proveByCommand(proof, proof.check, tools)
    case 'none':
      return proof.isPortKnown ? await proveByPort(proof, tools) : await proveByLife(proof, tools)
  }
}

type Polled<T> = { readonly value: T } | { readonly detail: string }

/**
 * Polls with growing pauses until `attempt` answers or the window is over; then the last detail. Nothing is
 * proven, or refuted, while the engine is away: it is waited for, and when it stays away, it is what failed.
 */
async function poll<T>(
  windowMs: number,
  { clock, signal }: Tools,
  attempt: () => Promise<Polled<T>>
): Promise<Polled<T>> {
  const now = (): number => clock.elapsed()
  const end = now() + windowMs
  let awaySince: number | undefined
  for (let pause = firstPollMs; ; pause = Math.min(pause * pauseGrowth, longestPollMs)) {
    signal.throwIfAborted()
    try {
      const result = await attempt()
      if ('value' in result || now() >= end) return result
      awaySince = undefined
    } catch (error) {
      if (!isEngineAway(error)) throw error
      awaySince ??= now()
      if (now() - awaySince >= engineAwayMs) throw error
    }
    await clock.sleep(awaySince === undefined ? Math.min(pause, Math.max(end - now(), 0)) : pause, signal)
  }
}

async function proveByHttp(
  proof: ProofRequest,
  check: HealthCheck & { type: 'http' },
  tools: Tools
): Promise<HealthProof> {
  let isRefused = false
  let isAnswered = false
  const result = await poll(check.windowSeconds * 1000, tools, async () => {
    const result = await askHttp(proof.containerId, { ...check, port: proof.port }, tools)
    if (isEngineAway(result.cause)) throw result.cause
    isRefused = result.isRefused
    isAnswered ||= result.isAnswered
    return result.isHealthy ? { value: result.saw } : { detail: result.saw }
  })
  if ('value' in result) return { status: 'passing', message: `GET ${check.path} ${result.value}` }
  if (!isAnswered) await refuseRouteConflict(proof, tools)
  const wanted = check.expectStatus === 0 ? 'a 2xx' : String(check.expectStatus)
  const others = isRefused ? await portsInUse(proof, tools) : ''
  throw new DeployFailure(
    `the health check GET ${check.path} on port ${proof.port} did not answer ${wanted} within ${check.windowSeconds} s; at last it ${result.detail}${others}`,
    others === ''
      ? 'correct the path, the expected status or the window with PUT …/health-check, or the application'
      : 'set container_port to the port it listens on'
  )
}

async function proveByCommand(
  proof: ProofRequest,
  check: HealthCheck & { type: 'command' },
  tools: Tools
): Promise<HealthProof> {
  const { startPeriodSeconds: start, intervalSeconds: interval, retries, timeoutSeconds: timeout } = check
  const windowSeconds = Math.min(120, Math.max(30, start + interval * (retries + 1) + timeout * retries))
  let output = ''
  const result = await poll<HealthProof>(windowSeconds * 1000, tools, async () => {
    const state = await tools.runtime.inspect(proof.containerId)
    output = state?.healthOutput ?? output
    if (state?.health === 'healthy')
      return { value: { status: 'passing', message: 'the health command succeeded' } }
    if (state?.health === 'unhealthy') {
      throw new DeployFailure(
        `the health command failed ${retries} times in a row`,
        'correct it with PUT …/health-check, or the application',
        output === '' ? null : output
      )
    }
    return { detail: 'it has not succeeded yet' }
  })
  if ('value' in result) return result.value
  throw new DeployFailure(
    `the health command did not succeed within ${windowSeconds} s`,
    'correct it with PUT …/health-check, or the application',
    output === '' ? null : output
  )
}

async function proveByPort(proof: ProofRequest, tools: Tools): Promise<HealthProof> {
  const result = await poll(portMs, tools, async () =>
    (await accepts(proof, proof.port, tools)) ? { value: true } : { detail: 'nothing listens there' }
  )
  if ('value' in result)
    return { status: 'skipped', message: `no health check; port ${proof.port} accepts connections` }
  await refuseRouteConflict(proof, tools)
  const others = await portsInUse(proof, tools)
  throw new DeployFailure(
    `nothing listened on port ${proof.port} within ${portMs / 1000} s${others}`,
    others === ''
      ? 'make the application listen on 0.0.0.0 (not on localhost) and on this port, or set container_port to the one it uses'
      : 'set container_port to the port it listens on'
  )
}

/** No port is configured: it serves as soon as the usual one answers, and is a worker when it keeps running without. */
async function proveByLife(proof: ProofRequest, tools: Tools): Promise<HealthProof> {
  const result = await poll(aliveMs, tools, async () =>
    (await accepts(proof, proof.port, tools)) ? { value: true } : { detail: '' }
  )
  if (!('value' in result) && (await tools.runtime.inspect(proof.containerId))?.status !== 'running') {
    await tools.clock.sleep(explainedMs, tools.signal)
    throw new DeployFailure('the container ended before it was healthy', 'its last output says why')
  }
  return {
    status: 'skipped',
    message:
      'value' in result
        ? `no health check; port ${proof.port} accepts connections`
        : `no health check and no port: the process has lived for ${aliveMs / 1000} s`
  }
}

/** A route of this machine that keeps requests from the container is reported before any other fault. */
async function refuseRouteConflict({ containerId }: ProofRequest, { runtime }: Tools): Promise<void> {
  const conflict = await runtime.routeConflict(containerId).catch(unlessEngineAway)
  if (conflict === null || conflict === undefined) return
  throw new DeployFailure(
    `the container runs, but the platform cannot reach it, because ${conflict}`,
    "take the route away; or set BUSBAR_SUBNETS to a private range that no route covers, remove the project's containers and its network, and deploy again"
  )
}

async function portsInUse(proof: ProofRequest, tools: Tools): Promise<string> {
  const candidates = usualPorts.filter(port => port !== proof.port)
  const open = await Promise.all(candidates.map(async port => await accepts(proof, port, tools)))
  const found = candidates.filter((_, index) => open[index])
  return found.length === 0 ? '' : `; the container listens on ${found.sort((a, b) => a - b).join(', ')}`
}

const isEngineAway = (error: unknown): error is Problem =>
  isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE'

function unlessEngineAway(error: unknown): undefined {
  if (isEngineAway(error)) throw error
}

async function accepts(
  { containerId }: ProofRequest,
  port: number,
  { runtime, signal }: Tools
): Promise<boolean> {
  const at = await runtime.dial(containerId, port).catch(unlessEngineAway)
  if (at === undefined || signal.aborted) return false
  return await new Promise<boolean>(resolve => {
    const socket = connect({ ...at, timeout: 1000 })
    const end = (result: boolean): void => {
      socket.destroy()
      resolve(result)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })
}
