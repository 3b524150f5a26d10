from .lpv import schedule_for_track as schedule_for_track
