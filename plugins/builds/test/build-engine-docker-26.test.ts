import { needsNoDownload, servedAndCached, testBuildEngine } from './engine-cases.js'
import { engineKinds } from './engine-lab.js'

testBuildEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'], {
  always: [servedAndCached, needsNoDownload],
  others: 1
})
