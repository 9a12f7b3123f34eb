import { identity } from 'busbar/api/identity'
import { projectDirectory } from 'busbar/api/projects'
import { definePlugin, kernel } from 'busbar/sdk'
import { routes } from './routes.js'
import { TokenService } from './token-service.js'

export default definePlugin({
  id: 'tokens',
  needs: { identity, projects: projectDirectory, operations: kernel.operations },
  start: ({ use }) => new TokenService(use),
  routes
})
