export { createDatabase } from '../../sdk/testing/cluster.js'
