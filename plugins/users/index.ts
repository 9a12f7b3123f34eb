import { definePlugin } from 'busbar/sdk'
import { routes } from './routes.js'
import { needs, startUsers } from './users.js'

export default definePlugin({
  id: 'users',
  needs,
  start: startUsers,
  routes
})
