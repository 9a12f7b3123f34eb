import { definePlugin } from 'busbar/sdk'
import { readPage } from './page-files.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'api-reference',
  start: async () => await readPage(),
  routes
})
