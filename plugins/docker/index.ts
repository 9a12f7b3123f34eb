import { definePlugin } from 'busbar/sdk'
import { needs, startDocker } from './docker.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'docker',
  needs,
  start: startDocker,
  routes
})
