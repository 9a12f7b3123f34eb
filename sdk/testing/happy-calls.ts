import type { TestClient } from './test-client.js'
import type { TestKernel } from './test-kernel.js'

/** What a happy call may use. Everything was made through the API, by the admin, for this round alone. */
export interface HappyFixture {
  readonly k: TestKernel
  readonly admin: TestClient
  /** Fills the path: `projectId`, and what the plugins' own `happyFixtures` have added. */
  readonly ids: Readonly<Record<string, string>>
  /** An unused name. */
  unique(word: string): string
}

export interface HappyCall {
  readonly as?: TestClient
  /** Replaces or adds ids of the path. */
  readonly ids?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The status that is the documented success here; any 2xx unless given. */
  readonly expect?: number
}

/**
 * One call per operation that succeeds, by `PUT /api/projects/{projectId}`. A plugin exports its own from
 * `test/happy-calls.ts`; a GET that needs nothing but ids is made without being named. The test that turns
 * every plugin off and on makes them all.
 */
export type HappyCalls = Readonly<Record<string, (fixture: HappyFixture) => HappyCall | Promise<HappyCall>>>

/** Makes what a plugin's paths need, and returns the ids by parameter name. */
export type HappyFixtures = (fixture: HappyFixture) => Promise<Readonly<Record<string, string>>>
