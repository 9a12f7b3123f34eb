import { definePlugin } from 'busbar/sdk'
import { singletons } from './jobs.js'
import {
  needs,
  runtimeDockerContributions,
  runtimeDockerServices,
  startRuntimeDocker
} from './runtime-docker.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'runtime-docker',
  needs,
  config: settings,
  start: startRuntimeDocker,
  provides: runtimeDockerServices,
  contributes: runtimeDockerContributions,
  singletons
})
