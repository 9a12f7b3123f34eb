import { definePlugin } from 'busbar/sdk'
import { needs, startAccount } from './account.js'
import { jobs } from './jobs.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'account',
  needs,
  start: startAccount,
  routes,
  jobs
})
