import { engineKinds } from './engine-lab.js'
import { testStaticSitesInEngine } from './engine-static-cases.js'

testStaticSitesInEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
