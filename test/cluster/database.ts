export { createDatabase, type TestDatabase, type TestDatabaseOptions } from '../../sdk/testing/cluster.js'
