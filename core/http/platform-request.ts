import { Http1Request } from 'busbar/sdk/http1'
import type { RequestContext } from './request-context.js'

/** A request of the platform's own server. */
export class PlatformRequest extends Http1Request {
  /** From when the guard has let it in until its answer is closed. A map from requests to contexts would be work for every collection. */
  declare context: RequestContext | undefined
}
