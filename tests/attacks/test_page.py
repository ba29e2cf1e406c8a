"""Every attack of the page has tests, and every test belongs to an attack of the page."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "attacks.md"

TESTS = {
    "1 underflow": [
        "test_a_float_flip_underflows_and_an_item_becomes_impossible",
        "test_no_item_is_impossible_in_either_world",
        "test_float_weights_add_up_to_one_before_the_last_item",
        "test_bits_that_let_the_weak_item_win_do_so",
    ],
    "2 scores beyond 2^53": [
        "test_one_user_moves_a_float_score_by_two_or_by_a_thousand",
        "test_a_shift_that_floats_cannot_take_changes_nothing",
    ],
    "3 envelope with a slack": ["test_a_constant_slack_does_not_make_a_bound"],
    "4 ties": [
        "test_noise_that_saturates_is_not_decided_by_the_order_of_the_input",
        "test_noise_that_a_large_score_swallows_does_not_give_the_place_to_the_first",
    ],
    "5 float sums": [
        "test_one_user_moves_a_float_sum_by_a_hundred_times_the_clip_bound",
        "test_the_order_of_rows_moves_a_float_sum",
    ],
    "6 conditions on other rows": [
        "test_a_condition_that_looks_at_other_rows_lets_one_user_move_a_hundred",
        "test_a_condition_on_single_rows_moves_every_score_by_one_at_most",
        "test_an_ibis_table_that_looks_at_other_rows_is_refused",
    ],
    "7 rows that fail": [
        "test_a_cast_tells_that_a_row_is_there",
        "test_no_value_of_a_row_makes_a_release_fail",
        "test_no_record_of_a_json_file_makes_a_release_fail",
        "test_no_bytes_of_a_row_in_a_frame_make_a_release_fail",
    ],
    "8 repeated randomness": [
        "test_the_release_has_two_hundred_bits",
        "test_forked_processes_do_not_draw_the_same",
        "test_threads_do_not_draw_the_same",
        "test_one_prepared_object_in_many_threads_draws_anew_each_time",
        "test_copies_do_not_repeat_the_noise",
        "test_a_table_has_no_copies",
        "test_threads_that_share_a_table_do_not_draw_the_same",
        "test_a_caller_who_seeds_everything_predicts_nothing",
        "test_a_release_with_a_callers_generator_says_that_it_protects_nobody",
    ],
    "9 order of the list": [
        "test_a_value_counts_echoes_the_ranks",
        "test_the_order_of_the_input_reaches_no_release",
        "test_an_order_is_released_only_where_epsilon_covers_it",
        "test_all_items_come_without_their_order",
    ],
    "10 errors and logs": [
        "test_a_column_of_one_of_several_files_is_not_shown",
        "test_chained_errors_quote_a_row_and_discreets_do_not",
        "test_representations_and_logs_show_scores_and_discreets_do_not",
        "test_an_error_about_scores_shows_none",
        "test_an_error_about_an_argument_shows_no_score",
        "test_an_error_about_a_file_of_scores_shows_none",
        "test_an_error_about_a_table_shows_no_row",
        "test_a_file_without_a_header_shows_no_row",
        "test_the_parts_of_a_lookup_show_no_score",
        "test_no_dataclass_of_a_source_prints_itself",
        "test_a_source_and_its_release_show_no_row",
        "test_a_file_that_fails_shows_no_row",
        "test_a_table_that_changes_its_type_shows_no_row",
        "test_no_setting_of_numpy_is_kept_where_threads_share_it",
        "test_what_is_kept_of_a_release_is_by_public_numbers_alone",
    ],
}
"""The tests of each attack of the page."""


def test_the_attacks_of_the_page_are_those_with_tests():
    page = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^\*\*(\d+)\. (.+)\.\*\*", page, re.MULTILINE)
    assert [f"{number} {title[0].lower()}{title[1:]}" for number, title in headings] == list(TESTS)


def test_every_test_belongs_to_an_attack():
    files = [path for path in HERE.glob("test_*.py") if path != Path(__file__)]
    written = [name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)]
    assert sorted(name for names in TESTS.values() for name in names) == sorted(written)
