import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { RequestRecorder } from 'busbar/api/requests'
import type { OptionalHandle } from 'busbar/sdk'
import { type Head, hostnameOf, type ObservedRequest } from 'busbar/sdk/http1'

/** Gives each request an id, and tells what has become of it to who records requests, where somebody does. */
export class RequestNotes {
  constructor(private readonly recorder: OptionalHandle<RequestRecorder>) {}

  /** `address`: of the client; `applicationId`: whose it is, null: nobody's. */
  begin(
    head: Head,
    request: IncomingMessage,
    { address, applicationId }: { readonly address: string; readonly applicationId: string | null }
  ): ObservedRequest {
    const id = randomUUID()
    const at = Date.now()
    const began = performance.now()
    return {
      id,
      ended: ({ statusCode, requestBytes, responseBytes }) => {
        this.recorder.get()?.record({
          id,
          hostname: hostnameOf(head),
          method: request.method ?? '',
          path: head.path,
          statusCode,
          latencyMs: performance.now() - began,
          requestSize: requestBytes,
          responseSize: responseBytes,
          clientIp: address === '' ? null : address,
          userAgent: request.headers['user-agent'] ?? null,
          at,
          applicationId
        })
      }
    }
  }
}
