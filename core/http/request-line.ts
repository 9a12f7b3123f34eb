import { isPlainText, JsonMembers } from '../log/json-members.js'

/** What the log says of a request that was answered. */
interface AnsweredRequest {
  readonly requestId: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly ms: number
  readonly ip: string
  readonly user: string | undefined
}

/** The members of its line. They were a twentieth of what a request costs, and nearly all have nothing to escape. */
export function requestMembers(request: AnsweredRequest): object {
  const { requestId, method, path, status, ms, ip, user } = request
  if (!isPlainText(path) || !isPlainText(ip)) return request
  const caller = user === undefined ? '' : `,"user":"${user}"`
  return new JsonMembers(
    `"requestId":"${requestId}","method":"${method}","path":"${path}","status":${status},"ms":${tenths(ms)},"ip":"${ip}"${caller}`
  )
}

/** A number with one decimal at most. Texts of integers are remembered, those of fractions are worked out each time. */
function tenths(value: number): string {
  const all = Math.round(value * 10)
  const last = all % 10
  const whole = (all - last) / 10
  return last === 0 ? `${whole}` : `${whole}.${last}`
}
