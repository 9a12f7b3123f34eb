import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  updating: [
    409,
    'E_PLATFORM_UPDATING',
    'an update of the platform is under way already',
    'wait until it has ended'
  ]
})
