import type { AdminClient } from './admin-client.js'
import type { Json, JsonObject } from './config/json.js'

/** One Caddy: one that the platform runs, or one that runs already. */
export interface Caddy {
  readonly client: AdminClient
  /** Why it cannot serve for us, as a half-sentence with what helps; null where it can. Changes nothing. */
  fault(): Promise<string | null>
  /** The block `admin` of its configuration, as it has to stay. */
  adminBlock(): Promise<Json>
  /** Serves this configuration from the moment this resolves. Throws `Refused` where Caddy does not take it. */
  serve(config: JsonObject): Promise<void>
  /** Whether Caddy would take a configuration: null, or why not. Undefined where it cannot be asked without being changed. */
  readonly validate: ((config: JsonObject) => Promise<string | null>) | undefined
  /** Ends its process and starts it with this configuration. */
  restart(config: JsonObject): Promise<void>
  /** Serves nothing any more, and leaves the ports. */
  end(): Promise<void>
  /** What it says while it writes no log. */
  said(): readonly string[]
}

/** Something that only an operator can change; a half-sentence with what helps. */
export class CaddyFault extends Error {}
