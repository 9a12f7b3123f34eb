/**
 * The test kit: the real platform in a test file, callers of every kind, sockets, a clock to move by
 * hand, and the access matrix that every route and channel enters by existing.
 */
export { accessMatrix, type MatrixRow } from './access-matrix.js'
export { createDatabase, type TestDatabase } from './cluster.js'
export type { HappyCall, HappyCalls, HappyFixture, HappyFixtures } from './happy-calls.js'
export { testClock, type TestClock } from './test-clock.js'
export { TestClient, type TestAnswer, type TestRequest } from './test-client.js'
export { createTestKernel, type TestKernel, type TestKernelOptions, type TestState, type TestUser } from './test-kernel.js'
export { TestSocket, type Frame } from './test-socket.js'
