import { stopCluster } from '../../sdk/testing/cluster.js'

await stopCluster()
