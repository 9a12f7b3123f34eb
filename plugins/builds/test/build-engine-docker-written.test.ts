import { engineKinds } from './engine-lab.js'
import { testWrittenDockerfiles } from './written-cases.js'

testWrittenDockerfiles(
  'the Docker Engine of this machine',
  engineKinds['the Docker Engine of this machine'],
  {
    always: [
      'Node.js: npm ci with a cache mount, dependencies in a stage, another user',
      'stages that the last one does not need are not built',
      'names of images in other forms'
    ],
    others: 3
  }
)
