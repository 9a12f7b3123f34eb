/**
 * The test kit: the real platform in a test file, callers of every kind, sockets, a clock to move by
 * hand, and the access matrix that every route and channel enters by existing.
 */
export { accessMatrix, admittedStatus, type MatrixRow } from './access-matrix.js'
export { createDatabase, type TestDatabase } from './cluster.js'
export type { HappyCall, HappyCalls, HappyFixture, HappyFixtures } from './happy-calls.js'
export { settingsFrom } from './settings-from.js'
export { type TestAnswer, TestClient, type TestRequest } from './test-client.js'
export { type TestClock, testClock } from './test-clock.js'
export {
  closers,
  createTestKernel,
  type TestKernel,
  type TestKernelOptions,
  type TestState,
  type TestUser
} from './test-kernel.js'
export { type Frame, TestSocket } from './test-socket.js'
export { until } from './until.js'
