import { engineKinds } from './engine-lab.js'
import { testNixpacksInEngine } from './engine-nixpacks-cases.js'

testNixpacksInEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
